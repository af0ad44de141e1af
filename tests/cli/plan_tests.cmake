# lockstep plan. The profiles under tests/data/plan/scale-layer are made up.
set(scale_layer plan --aceso-model scale-layer --aceso-size 2layers --profiles tests/data/plan/scale-layer --gpus-per-node 2 --nodes 2 --memory-limit 4000)
lockstep_cli_test(cli_plan_price ARGS ${scale_layer} --price tests/data/plan/scale-layer/two-stages.json GOLDEN plan/price.txt ERR "the plan uses 3 GPUs; the cluster has 4")
lockstep_cli_test(cli_plan_price_fixed ARGS ${scale_layer} --price tests/data/plan/scale-layer/two-stages.json --cost fixed --json GOLDEN plan/price-fixed.json)
lockstep_cli_test(cli_plan_no_size ARGS plan --aceso-model gpt --aceso-size 9B --profiles tests/data/plan/scale-layer --price p.json EXIT 2 ERR "--aceso-size: gpt has no size '9B'" "1_3B")
lockstep_cli_test(cli_plan_other_layers ARGS plan --aceso-model scale-layer --aceso-size 3layers --profiles tests/data/plan/scale-layer --price tests/data/plan/scale-layer/two-stages.json EXIT 2 ERR "two-stages.json: model_size: this plan is for '2layers'")
lockstep_cli_test(cli_plan_no_profiles ARGS plan --aceso-model gpt --aceso-size 1_3B --profiles nowhere --price tests/data/plan/scale-layer/two-stages.json EXIT 2 ERR "two-stages.json: model_name")
lockstep_cli_test(cli_plan_search ARGS ${scale_layer} --global-batch 16 --micro-batch 1 2 -o @OUT@ OUT "proven: no plan of the space is faster")
lockstep_cli_test(cli_plan_no_batch ARGS ${scale_layer} EXIT 2 ERR "--global-batch: the samples of an iteration are missing")
lockstep_cli_test(cli_plan_too_little ARGS plan --aceso-model scale-layer --aceso-size 2layers --profiles tests/data/plan/scale-layer --gpus-per-node 2 --memory-limit 100 --global-batch 16 --micro-batch 1 2 EXIT 2 ERR "no plan fits: microbatch 1: no plan fits 100 MB on 2 GPUs")
lockstep_cli_test(cli_plan_missing_profile ARGS ${scale_layer} --global-batch 16 --micro-batch 1 2 4 OUT "proven" ERR "gpt_scale-layer_mbs4_tp1_algo0.csv: no file; plans with 4 samples a rank at tp 1 are left out")
set(metis plan --metis-hostfile tests/data/plan/metis/hostfile --metis-clusterfile tests/data/plan/metis/cluster.json --profiles tests/data/plan/metis --gbs 8 --max-tp 2 --max-batch 2)
lockstep_cli_test(cli_plan_metis ARGS ${metis} --layers 4 GOLDEN plan/metis.txt)
# By hand, strict: A100s hold 3 layers of 2 samples: 2 + 16 + 16 = 34 ms, T4s the head: 16 ms.
# execution (2-1) 34 + 50 = 84; sync 2 x 2; update 2 x 4 x 3/4 = 6; batches 2 x 0.5.
lockstep_cli_test(cli_plan_metis_price ARGS ${metis} --layers 4 --price tests/data/plan/metis/plan.json --json OUT "\"execution_s\": 0.084" "\"synchronisation_s\": 0.004" "\"update_s\": 0.006" "\"batch_s\": 0.001")
lockstep_cli_test(cli_plan_metis_layers ARGS ${metis} --layers 5 EXIT 2 ERR "DeviceType.A100_tp1_bs1.json: 4 layers, but --layers is 5")
lockstep_cli_test(cli_plan_two_problems ARGS ${metis} --layers 4 --aceso-model gpt EXIT 2 ERR "no problem is given, or two")
lockstep_cli_test(cli_plan_megatron ARGS ${scale_layer} --global-batch 16 --micro-batch 1 2 --strategy megatron OUT "the best of [0-9]+ regular plans that fit")
