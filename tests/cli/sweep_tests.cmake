# Sweeps and the cache.
lockstep_cli_test(cli_sweep_list ARGS sweep tests/data/sweep/engines.yaml --list GOLDEN sweep/engines.list.txt)
lockstep_cli_test(cli_sweep ARGS sweep tests/data/sweep/engines.yaml -o @OUT@ OUT "^6 of 6 points, 6 of them computed now: 6 done$" "^written: @OUT@/table.csv")
lockstep_cli_test(cli_sweep_no_grid ARGS sweep absent.yaml -o @OUT@ EXIT 2 ERR "absent.yaml: cannot read the file")
lockstep_cli_test(cli_sweep_bad_grid ARGS sweep tests/fuzz/corpus/grid/quote.yaml -o @OUT@ EXIT 2 ERR "quote.yaml:3: axes: is no list")
if(TARGET lockstep-packet)
  lockstep_cli_test(cli_sweep_packets ARGS sweep tests/data/sweep/packets.yaml -o @OUT@ LABELS fast ns3 OUT "^4 of 4 points, 4 of them computed now: 4 done$")
endif()
lockstep_script_test(cli_sweep_resume COMMAND sweep_test.sh $<TARGET_FILE:lockstep> LABELS slow)
if(TARGET lockstep-mpi)
  lockstep_script_test(cli_sweep_ranks COMMAND sweep_test.sh $<TARGET_FILE:lockstep> ${MPIEXEC_EXECUTABLE} LABELS slow mpi)
endif()
lockstep_script_test(cli_cache COMMAND cache_test.sh $<TARGET_FILE:lockstep> LABELS slow)
lockstep_cli_test(cli_cache_nowhere ARGS cache ls EXIT 2 ERR "no cache is named" "expected: --dir FOLDER, or LOCKSTEP_CACHE")

# The service.
lockstep_script_test(cli_serve COMMAND serve_test.sh $<TARGET_FILE:lockstep> LABELS slow)
lockstep_cli_test(cli_serve_nowhere ARGS serve EXIT 2 ERR "nothing to listen on" "expected: --socket PATH, or --port N")
lockstep_cli_test(cli_serve_open ARGS serve --port 0 --address 0.0.0.0 EXIT 2 ERR "--address: an address that other machines reach needs a token")
