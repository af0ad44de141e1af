# lockstep topology: what each subcommand prints, and how each mistake ends.
set(catalogue ${PROJECT_SOURCE_DIR}/topologies/catalogue)

# The catalogue is what its README's commands write.
lockstep_cli_test(cli_topology_server8 ARGS topology build --template Spectrum-X -g 8 -psn 2 -o - GOLDEN ../../topologies/catalogue/server8.txt)
lockstep_cli_test(cli_topology_spectrum16 ARGS topology build --template Spectrum-X -g 16 -psn 8 -o - GOLDEN ../../topologies/catalogue/spectrum16.txt)
lockstep_cli_test(cli_topology_rail128 ARGS topology build --template rail-optimised -psn 16 -o - GOLDEN ../../topologies/catalogue/rail128.txt)
lockstep_cli_test(cli_topology_hpn64 ARGS topology build -topo AlibabaHPN -g 64 -asn 16 -psn 8 --dp -o - GOLDEN ../../topologies/catalogue/hpn64.txt)
# As many leaf switches as the GPUs need: nothing to warn about where no number is given.
lockstep_cli_test(cli_topology_leaves ARGS topology describe Spectrum-X:g=1024 OUT "tier 1 +16 switches")
lockstep_cli_test(cli_topology_leaves_given ARGS topology describe Spectrum-X:g=1024,asn=7 OUT "tier 1 +16 switches" ERR "warning: leaf-switches: 16 in place of 7, as 1024 GPUs need")
lockstep_cli_test(cli_topology_convert_to_json ARGS topology convert topologies/catalogue/server8.txt --format json -o - OUT "\"schema\": \"lockstep-topology/1\"" "\"gpus_per_server\": 8")
lockstep_cli_test(cli_topology_convert_to_simai ARGS topology convert topologies/catalogue/nvl72x2.json -o @OUT@/t.txt ERR "t.txt: 144 GPUs, 2 NVSwitches, 8 switches")
lockstep_cli_test(cli_topology_convert_two_types ARGS topology convert topologies/catalogue/mixed32.json -o - EXIT 2 ERR "GPU types")
lockstep_cli_test(cli_topology_convert_format ARGS topology convert topologies/catalogue/server8.txt --format yaml -o - EXIT 2 ERR "there is no topology format 'yaml'")
lockstep_cli_test(cli_topology_nvl72_type ARGS topology describe nvl72 OUT "8 of 72 GB200 GPUs")
lockstep_cli_test(cli_topology_nvl72x2 ARGS topology build --template nvl72 --racks 2 --racks-per-leaf=2 --spine-switches 4 --format json -o - GOLDEN ../../topologies/catalogue/nvl72x2.json)
lockstep_cli_test(cli_topology_mixed32 ARGS topology build --template heterogeneous --gpus-a 16 --gpus-b 16 --spine-switches 4 --format json -o - GOLDEN ../../topologies/catalogue/mixed32.json)

# Expectation: 128 GPUs on 8 rails; 1408 pairs share a server or a rail (2 hops), 6720 go over a
# spine; half the NICs of the cluster cross the middle.
lockstep_cli_test(cli_topology_describe ARGS topology describe ${catalogue}/rail128.txt GOLDEN describe_rail128.txt)
lockstep_cli_test(cli_topology_links ARGS topology links Spectrum-X:g=16 --of 3 GOLDEN links.txt)
lockstep_cli_test(cli_topology_links_json ARGS topology links full-mesh:g=3 --json GOLDEN links_mesh.json)
lockstep_cli_test(cli_topology_links_no_node ARGS topology links Spectrum-X:g=16 --of 99 EXIT 2 ERR "--of: there is no node 99; there are 90, from 0")
lockstep_cli_test(cli_topology_describe_json ARGS topology describe torus:shape=2x3 --json GOLDEN describe_torus.json)
lockstep_cli_test(cli_topology_draw ARGS topology draw Spectrum-X:asn=64 -o - OUT "segment × 8, each 8 switches of tier 1, 512 GPUs")
lockstep_cli_test(cli_topology_check ARGS topology check ${catalogue}/rail128.txt OUT "rail128.txt: ok, 128 GPUs, 16 NVSwitches, 24 switches, 384 links")
lockstep_cli_test(cli_topology_build_help ARGS topology build --template dragonfly --help OUT "^Templates" "^Flags of dragonfly" "--global-links")
lockstep_cli_test(cli_topology_folder ARGS topology build -g 8 -o @OUT@/ ERR "No_Rail_Opti_8g_8gps_SingleToR_400Gbps_H100: 8 GPUs")
lockstep_cli_test(cli_topology_warning ARGS topology build --template Spectrum-X -g 1024 -o /dev/null ERR "warning: .*The correct asw_switch_num is set to 16")

lockstep_cli_test(cli_topology_no_output ARGS topology build -g 8 EXIT 2 ERR "no output is named")
lockstep_cli_test(cli_topology_no_template ARGS topology build --template Spectrum-Y -o - EXIT 2 ERR "did you mean Spectrum-X")
lockstep_cli_test(cli_topology_bad_flag ARGS topology build --template torus --shap 4x4 -o - EXIT 2 ERR "no flag 'shap'" "did you mean shape")
lockstep_cli_test(cli_topology_bad_value ARGS topology build --template plain -g -8 -o - EXIT 2 ERR "flag gpus" "whole number from 1")
lockstep_cli_test(cli_topology_bad_format ARGS topology build -g 8 --format xml -o - EXIT 2 ERR "no topology format 'xml'" "simai or json")
lockstep_cli_test(cli_topology_not_full ARGS topology build --template DCN+ -g 100 -o - EXIT 2 ERR "do not fill servers of 8" "such as 104")
lockstep_cli_test(cli_topology_needs_json ARGS topology build --template heterogeneous -o - EXIT 2 ERR "2 GPU types" "write it as .json")
lockstep_cli_test(cli_topology_full_disk ARGS topology build -g 8 -o /dev/full EXIT 2 ERR "No space left")
lockstep_cli_test(cli_topology_missing_file ARGS topology check no/such/file.txt EXIT 2 ERR "neither a file nor a topology template")
lockstep_cli_test(cli_topology_folder_is_no_file ARGS topology check ${catalogue} EXIT 2 ERR "is a directory")
lockstep_cli_test(cli_topology_huge_header ARGS topology check ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/topology/huge_header.txt EXIT 2 ERR "huge_header.txt:1: node_num: 1000000000 nodes, but 1 links reach at most 2")
lockstep_cli_test(cli_topology_truncated ARGS topology check ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/topology/truncated.txt EXIT 2 ERR "truncated.txt:4:14: error_rate: the line ends too early" "five fields")
