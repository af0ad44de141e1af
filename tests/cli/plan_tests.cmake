# lockstep plan. The profiles under tests/data/plan/scale-layer are made up.
set(scale_layer plan --aceso-model scale-layer --aceso-size 2layers --profiles tests/data/plan/scale-layer --gpus-per-node 2 --nodes 2 --memory-limit 4000)
lockstep_cli_test(cli_plan_price ARGS ${scale_layer} --price tests/data/plan/scale-layer/two-stages.json GOLDEN plan/price.txt ERR "the plan uses 3 GPUs; the cluster has 4")
lockstep_cli_test(cli_plan_price_fixed ARGS ${scale_layer} --price tests/data/plan/scale-layer/two-stages.json --cost fixed --json GOLDEN plan/price-fixed.json)
lockstep_cli_test(cli_plan_no_size ARGS plan --aceso-model gpt --aceso-size 9B --profiles tests/data/plan/scale-layer --price p.json EXIT 2 ERR "--aceso-size: gpt has no size '9B'" "1_3B")
lockstep_cli_test(cli_plan_other_layers ARGS plan --aceso-model scale-layer --aceso-size 3layers --profiles tests/data/plan/scale-layer --price tests/data/plan/scale-layer/two-stages.json EXIT 2 ERR "two-stages.json: model_size: this plan is for '2layers'")
lockstep_cli_test(cli_plan_no_profiles ARGS plan --aceso-model gpt --aceso-size 1_3B --profiles nowhere --price tests/data/plan/scale-layer/two-stages.json EXIT 2 ERR "two-stages.json: model_name")
