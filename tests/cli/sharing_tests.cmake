# Several jobs on one fabric, memory over the step, BytePS's timeline, sets of execution traces.
set(tiny --workload tests/data/simulate/tiny.txt)
set(small_llama --model llama3-8b --gpus 16 --tp 2 --pp 4 --global-batch 16 --seq-length 2048 --topology Spectrum-X:g=16)
lockstep_cli_test(cli_simulate_job_matrix ARGS simulate ${tiny} --beside tests/data/simulate/tiny.txt --beside tests/data/simulate/tiny.txt
                  --topology Spectrum-X:g=32 --job-matrix OUT "^slowdown beside +alone ms" "^.*-2 +[0-9.]+ +1.0000 +- +1.0000 +1.0000$")
lockstep_cli_test(cli_simulate_job_matrix_one ARGS simulate ${tiny} --topology Spectrum-X:g=8 --job-matrix EXIT 2 ERR "--job-matrix: there is one job only" "--beside FILE")
# One trace of two jobs would be read as one of one.
lockstep_cli_test(cli_simulate_beside_trace ARGS simulate ${tiny} --beside tests/data/simulate/tiny.txt --topology Spectrum-X:g=16 --trace @OUT@/jobs.csv EXIT 2 ERR "--trace: a trace for 'lockstep whatif' is of one job, but 2 run" "a time line")
# A scenario may name the other jobs.
lockstep_cli_test(cli_simulate_scenario_beside ARGS simulate ${tiny} --topology Spectrum-X:g=16 --scenario tests/data/stragglers/two-jobs.yaml --job-matrix
                  OUT "^16 GPUs, 2 jobs; the first: 8 GPUs: tp 4, pp 1, dp 2, ep 1, 1 micro-batch$" "^  gpu:11:2 .* 1.752$" "^  tiny-2 +8 +8 +2096.112$" "^tiny-2 +2.096 +1.0000 +- +1.0000$")
lockstep_cli_test(cli_simulate_scenario_beside_wrong ARGS simulate ${tiny} --topology Spectrum-X:g=16 --scenario tests/data/stragglers/wrong-beside.yaml EXIT 2
                  ERR "wrong-beside.yaml:2: beside: is no name of a workload's file")
lockstep_cli_test(cli_simulate_scenario_key ARGS simulate ${tiny} --topology Spectrum-X:g=16 --scenario tests/data/stragglers/wrong-key.yaml EXIT 2
                  ERR "wrong-key.yaml:2: unknown key 'straglers'" "did you mean stragglers")
lockstep_cli_test(cli_simulate_beside_missing ARGS simulate ${tiny} --beside none.txt --topology Spectrum-X:g=16 EXIT 2 ERR "none.txt: cannot read")
lockstep_cli_test(cli_simulate_beside_too_many ARGS simulate ${tiny} --beside tests/data/simulate/tiny.txt --topology Spectrum-X:g=8 EXIT 2 ERR "the topology has 8 GPUs, but the workload needs 16")
lockstep_cli_test(cli_simulate_memory ARGS simulate ${small_llama} --memory --memory-csv @OUT@/m.csv OUT "^rank 0 of stage 0 holds most [0-9.]+ ms into the step: [0-9.]+ GiB$" "^rank 12 of stage 3 holds most ")
lockstep_cli_test(cli_simulate_memory_workload ARGS simulate ${tiny} --topology Spectrum-X:g=8 --memory EXIT 2 ERR "--memory: what ranks hold is known of a model")
lockstep_cli_test(cli_simulate_interference ARGS simulate ${tiny} --topology Spectrum-X:g=8 --interference 1.5 EXIT 2 ERR "--interference")
lockstep_cli_test(cli_simulate_interference_fold ARGS simulate ${small_llama} --interference 0.15 --verify-symmetry OUT "^step time ")
lockstep_script_test(cli_byteps_trace COMMAND byteps_trace_test.sh $<TARGET_FILE:lockstep> LABELS fast)
lockstep_cli_test(cli_simulate_straggler_trace_analytic ARGS simulate ${tiny} --engine analytic --straggler trace:tests/data/whatif/two-stages.csv EXIT 2 ERR "--straggler trace:.*no microbatches")
lockstep_script_test(cli_first_job COMMAND first_job_test.py $<TARGET_FILE:lockstep> LABELS fast)
lockstep_long_sanitized(cli_first_job)
lockstep_script_test(cli_stages_of_jobs COMMAND stages_of_jobs_test.py $<TARGET_FILE:lockstep> LABELS fast)
