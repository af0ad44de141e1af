# Every rule of a job, broken: the message names the rule and the values nearest by that keep it.
# name | flags | what stderr says, one regular expression after the other
set(exact_rules
  "no_gpus|--model llama3-8b|--gpus: the number of GPUs is missing"
  "gpus_zero|--model llama3-8b --gpus 0|--gpus: 0 is out of range|from 1 to 16777216"
  "gpus_negative|--model llama3-8b --gpus -8|--gpus: -8 is out of range"
  "gpus_absurd|--model llama3-8b --gpus 99999999|--gpus: 99999999 is out of range"
  "gpus_no_number|--model llama3-8b --gpus 1e3|--gpus: '1e3' is no whole number"
  "tp_world|--model llama3-8b --gpus 16 --tp 3|--tp: tp x cp x pp = 3 x 1 x 1 does not divide 16 GPUs|expected: tp 2 or 4|15 or 18 GPUs"
  "pp_world|--model llama3-8b --gpus 16 --pp 3|--pp: tp x cp x pp = 1 x 1 x 3 does not divide|expected: pp 2 or 4"
  "cp_world|--model llama3-8b --gpus 8 --cp 3|--cp: tp x cp x pp = 1 x 3 x 1|expected: cp 2 or 4"
  "world_two|--model llama3-8b --gpus 12 --tp 2 --pp 4|does not divide 12 GPUs|expected: tp 1 or 3, or pp 3 or 6"
  "world_too_small|--model llama3-8b --gpus 4 --tp 8|expected: tp 4|hint: or more GPUs"
  "tp_heads|--model llama3-8b --gpus 48 --tp 6|--tp: 6 does not divide the heads of attention.core .32.|nearest: 4 or 8"
  "tp_heads_of_gpus|--model llama3-8b --gpus 40 --tp 5|--tp: 5 does not divide the heads|nearest: 4 or 8"
  "tp_key_heads|--model llama3-8b --num-attention-heads 24 --num-query-groups 8 --kv-channels 128 --gpus 24 --tp 6|--tp: 6 and the 8 key-value heads|nearest: 4 or 8"
  "ep_experts|--model mixtral-8x7b --gpus 12 --ep 3|--ep: 3 does not divide the experts of moe .8.|nearest: 2 or 4"
  "ep_dense|--model llama3-8b --gpus 8 --ep 2|--ep: llama3-8b has no experts to spread|expected: 1"
  "etp_world|--model mixtral-8x7b --gpus 16 --tp 2 --sp --etp 3 --ep 2|expert_tp x ep x pp = 3 x 2 x 1 does not divide 16|expected: expert_tp 2 or 4"
  "moe_needs_sp|--model mixtral-8x7b --gpus 16 --tp 2|--sequence_parallel: experts with tensor parallelism need"
  "batch|--model llama3-8b --gpus 8 --gbs 12|--global_batch: 12 is no multiple of micro_batch x dp = 1 x 8|expected: 8 or 16"
  "batch_of_three|--model llama3-8b --gpus 8 --mbs 3 --gbs 64|= 3 x 8|expected: 48 or 72"
  "batch_absurd|--model llama3-8b --gpus 8 --gbs 8000000000|--global_batch: 1000000000 microbatches|at most 4194304 passes"
  "seq_zero|--model llama3-8b --gpus 8 --seq 0|--seq: 0 is out of range"
  "seq_absurd|--model llama3-8b --gpus 8 --seq 99999999999999|--seq: 99999999999999 is out of range"
  "seq_cp|--model llama3-8b --gpus 8 --cp 4 --seq 1001|--seq: 1001 tokens do not divide into 2 x cp = 8 chunks|expected: 1000 or 1008"
  "seq_sp|--model llama3-8b --gpus 8 --tp 8 --sp --seq 1004|--seq: 1004 tokens do not divide by tp x cp = 8 x 1|expected: 1000 or 1008|or --tp 4"
  "pp_layers|--model llama3-8b --gpus 64 --pp 64|--pp: 32 layers cannot be cut into 64 stages|at most 32 stages"
  "vpp_layers|--model llama3-8b --gpus 8 --pp 2 --vpp 32|--vpp: 32 layers cannot be cut into 2 stages of 32 chunks|at most 16 chunks"
  "vpp_one_stage|--model llama3-8b --gpus 8 --vpp 2|--vpp: one stage has nothing to interleave|pp of 2 or more"
  "vpp_batch|--model llama3-8b --gpus 16 --pp 4 --vpp 2 --gbs 24|--global_batch: 6 microbatches do not divide by pp = 4|expected: 16 or 32"
  "first_layers|--model llama3-8b --gpus 16 --pp 4 --first-stage-layers 4|--first_stage_layers: 28 layers are left for 3 stages|27 or 30 would do"
  "last_layers|--model llama3-8b --gpus 16 --pp 2 --last-stage-layers 40|--last_stage_layers: 40 is out of range"
  "hsdp_unsharded|--model llama3-8b --gpus 8 --hsdp-replicas 2|--hsdp_replicas: only a fully sharded model"
  "hsdp|--model llama3-8b --gpus 8 --zero 3 --hsdp-replicas 3|--hsdp_replicas: 3 does not divide dp x cp .8.|nearest: 2 or 4"
  "zero|--model llama3-8b --gpus 8 --zero 4|--zero: 4 is out of range|from 0 to 3"
  "zero_twice|--model llama3-8b --gpus 8 --zero 2 --use-distributed-optimizer|--zero: the distributed optimizer is ZeRO-1"
  "fp8_a100|--model llama3-8b --gpus 8 --precision fp8 --gpu-type A100|--precision: A100 has no fp8|expected: bf16, fp16, fp32|H100, .*MI300X have it"
  "fp8_v100|--model llama3-8b --gpus 8 --precision fp8 --gpu-type V100|--precision: V100 has no fp8|expected: fp16, fp32"
  "bf16_v100|--model llama3-8b --gpus 8 --gpu-type V100|--precision: V100 has no bf16|expected: fp16, fp32"
  "gpu|--model llama3-8b --gpus 8 --gpu-type H1000|--gpu_type: unknown GPU type 'H1000'|did you mean H100"
  "recipe|--model llama3-8b --gpus 8 --fp8-recipe delayd|--fp8_recipe: invalid choice 'delayd'|did you mean 'delayed'"
  "schedule|--model llama3-8b --gpus 8 --schedule 1f1c|--schedule: there is no pipeline schedule '1f1c'|did you mean 1f1b"
  "order|--model llama3-8b --gpus 8 --rank-order tp-pp|--rank_order: 'tp-pp' is no order|tp-cp-ep-dp-pp"
  "capacity|--model mixtral-8x7b --gpus 8 --moe-capacity -1|--moe_capacity: the capacity factor is out of range"
  "capacity_no_number|--model mixtral-8x7b --gpus 8 --moe-capacity x|--moe_capacity: 'x' is not a number"
  "imbalance|--model mixtral-8x7b --gpus 8 --ep 4 --moe-imbalance 9|--moe_imbalance: the imbalance of experts is out of range|from 1 .even. to ep = 4"
  "bucket|--model llama3-8b --gpus 8 --gradient-bucket -1|--gradient_bucket: -1 is out of range"
  "vocabulary|--model llama3-8b --gpus 8 --make-vocab-size-divisible-by 0|--make_vocab_size_divisible_by: 0 is out of range"
  "unknown_flag|--model llama3-8b --gpus 8 --tpp 2|unknown flag '--tpp'|did you mean '--tp'"
  "unknown_model|--model llama3-80b --gpus 8|unknown model 'llama3-80b'|did you mean llama3-8b"
  "two_models|--model llama3-8b --model-file x --gpus 8|--model: more than one model is named"
  "sizes|--model llama3-8b --gpus 8 --num-attention-heads 12|is no whole number|with the sizes on the command line: heads = 12"
  "sizes_unknown|--model deepseek-v3 --gpus 8 --num-query-groups 4|the model has no variable 'kv_heads'"
  "all_to_all_heads|--model gpt3-175b --gpus 64 --tp 8 --cp 8 --context-comm a2a|--cp: 8 does not divide the heads of attention.core on a rank, as all-to-all needs .12.|nearest: 4"
  "all_to_all_groups|--model llama3-8b --gpus 64 --tp 2 --cp 8 --context-comm a2a|--cp: 8 does not divide the key-value heads of attention.core on a rank, as all-to-all needs .4.|nearest: 4"
  "all_to_all_one_group|--model llama3-8b --gpus 64 --tp 16 --cp 2 --context-comm a2a|--cp: 2 does not divide the key-value heads of attention.core on a rank, as all-to-all needs .1.|nearest: 1"
)
set(aicb_rules
  "world|simai-training --world_size 12 --tp 8|--world_size: 12 GPUs cannot be cut into tp x pp = 8 x 1|8 or 16|or --tp 6 or 12"
  "world_pp|megatron --world_size 8 --pp 3|tp x pp = 1 x 3|6 or 9|or --pp 2 or 4"
  "world_negative|simai-training --world_size -4|--world_size: -4 is out of range"
  "tp_width|simai-training --world_size 6 --tp 3 --num_attention_heads 16|is not divisible by 3|a divisor of 1024: 2 or 4"
  "experts|simai-training --world_size 9 --ep 3 --moe --sp --num_experts 8|--expert_model_parallel_size: num_experts = 8 is not divisible by 3|2 or 4|6 or 9"
  "moe_needs_sp|simai-training --world_size 8 --moe --num_experts 8|--moe_enable: mixture of experts requires sequence parallelism|--sp"
  "float16|simai-training --world_size 8 --ep 2 --num_experts 8 --dtype float16|--dtype: expert parallelism is not supported with float16|bfloat16 or float32"
  "grouped|simai-training --grouped_gemm --dtype float16|--dtype: grouped GEMM|expected: bfloat16"
  "heads|simai-training --num_attention_heads 0|--num_attention_heads: 0 is out of range"
  "layers|simai-training --num_layers -2|--num_layers: -2 is out of range"
  "hidden|simai-training --hidden_size 99999999999999999999|--hidden_size: .* is no whole number we can hold"
  "rows|simai-training --global_batch 99999999999|rows|at most 2e9"
  "micro_batch|megatron --micro_batch 0|--micro_batch: 0 is out of range"
  "stage_of_pipeline|megatron --world_size 2 --pp 2 --pp_rank 2|--pp_rank: there is no stage 2 of 2|a stage from 0 to 1"
  "no_value|simai-training --tp|--tensor_model_parallel_size: this flag needs a value"
  "ambiguous|simai-training --num 3|the flag '--num' is ambiguous|--num_layers, --num_attention_heads"
  "frame|simai-training --frame Megatrn|--frame: invalid choice 'Megatrn'|did you mean 'Megatron'"
  "stage|deepspeed3 --stage 4|--stage: 4 is out of range|from 1 to 3"
  "bucket|deepspeed12 --allgather_bucket_size 0|--allgather_bucket_size: 0 is out of range"
  "collective|collective --test_comm all_reduc|--test_comm: unknown collective|did you mean 'all_reduce'"
  "begin|micro --begin_size 0|--begin_size: sizes that double cannot begin at 0"
  "inference_model|inference Llama|unknown model 'Llama'|DeepSeek, Qwen3-Moe or Qwen3-Next"
  "aiob|simai-training --aiob|--aiob_enable: no compute-time file is given"
  "log|trace-replay|no log is named"
)
function(lockstep_rules prefix command rules)
  foreach(rule IN LISTS rules)
    string(REPLACE "|" ";" parts "${rule}")
    list(POP_FRONT parts name flags)
    separate_arguments(flags)
    lockstep_cli_test(cli_rule_${prefix}_${name} ARGS ${command} ${flags} -o - EXIT 2 ERR ${parts})
  endforeach()
endfunction()
lockstep_rules(exact "generate" "${exact_rules}")
lockstep_rules(aicb "generate;--generator" "${aicb_rules}")
lockstep_cli_test(cli_rule_aicb_tp_heads ARGS generate --generator simai-training --world_size 5 --tp 5 --hidden_size 1000 --num_attention_heads 8 --ffn_hidden_size 4000 --global_batch 1 -o @OUT@/w.txt
                  ERR "warning: tp 5 does not divide the 8 attention heads.* tp 4 or 8 would do")
# What AICB itself fails on is written, and said.
lockstep_cli_test(cli_aicb_fails_on_amp ARGS generate --generator deepspeed12 --amp_enabled --num_layers 1 --hidden_size 64 -o - OUT "barrier" ERR "warning: amp_enabled: AICB itself fails on it at stages 1 and 2")
lockstep_cli_test(cli_aicb_fails_on_pipeline ARGS generate --generator megatron --world_size 2 --pp 2 --num_layers 2 --hidden_size 64 -o - OUT "isend" ERR "warning: pipeline_model_parallel without workload_only: .*this is the first stage")
