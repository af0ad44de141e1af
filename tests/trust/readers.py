"""Every flag and argument of the program that names a file to read: @F@ is the file, @D:NAME@ a
folder in which it lies under that name."""
from outputs import ACESO, STEP, TINY, TOPOLOGY

SCALE = [*ACESO, "--aceso-size", "2layers", "--memory-limit", "4000"]
METIS = ["plan", "--metis-hostfile", "tests/data/plan/metis/hostfile", "--metis-clusterfile",
         "tests/data/plan/metis/cluster.json", "--profiles", "tests/data/plan/metis", "--layers", "4",
         "--gbs", "8", "--max-tp", "2", "--max-batch", "2"]
ANALYTIC = ["simulate", "--workload", TINY, "--engine", "analytic"]
MODEL = ["generate", "--model", "llama3-8b", "--gpus", "8", "-o", "-"]
ALLREDUCE = ["collective", "--op", "allreduce", "--size", "1MiB", "--topology"]
LOG = "tests/data/logs/two-tables.txt"
STEPS = "tests/data/whatif/two-peers.csv"
AIOB = ["generate", "--generator", "simai-training", "--num_layers", "2", "-o", "-", "--aiob_enable"]


def replaced(words, flag, value):
    words = list(words)
    words[words.index(flag) + 1] = value
    return words


READERS = {
    "topology check": ["topology", "check", "@F@"],
    "topology describe": ["topology", "describe", "@F@"],
    "topology draw": ["topology", "draw", "@F@", "-o", "-"],
    "collective --topology": [*ALLREDUCE, "@F@"],
    "collective --algorithm-file": [*ALLREDUCE, TOPOLOGY, "--algorithm-file", "@F@"],
    "collective --split": ["collective", "--op", "alltoall", "--topology", TOPOLOGY, "--split", "@F@"],
    "collective --conf": [*ALLREDUCE, TOPOLOGY, "--conf", "@F@"],
    "simulate --workload": ["simulate", "--workload", "@F@", "--topology", TOPOLOGY],
    "simulate --topology": ["simulate", "--workload", TINY, "--topology", "@F@"],
    "simulate --beside": [*STEP, "--beside", "@F@"],
    "simulate --conf": [*STEP, "--conf", "@F@"],
    "simulate --interference": [*STEP, "--interference", "@F@"],
    "simulate --scenario": [*STEP, "--scenario", "@F@"],
    "simulate --straggler jitter": [*STEP, "--straggler", "jitter:0-7:@D:h.csv@/h.csv"],
    "simulate --straggler trace": [*STEP, "--straggler", "trace:@D:t.csv@/t.csv"],
    "simulate --busbw": [*ANALYTIC, "--busbw", "@F@"],
    "simulate --ratios": [*ANALYTIC, "--ratios", "@D:nic_ratio.csv@"],
    "generate --model-file": ["generate", "--model-file", "@F@", "--gpus", "8", "-o", "-"],
    "generate --hf-config": ["generate", "--hf-config", "@F@", "--gpus", "8", "-o", "-"],
    "generate --process": [*MODEL, "--process", "@F@"],
    "generate --profile": [*MODEL, "--profile", "@F@"],
    "generate --from-megatron-args": ["generate", "--from-megatron-args", "@F@", "-o", "-"],
    "generate --comp_filepath": [*AIOB, "--comp_filepath", "@F@"],
    "generate --fill_times": ["generate", "--generator", "megatron", "--num_layers", "2", "-o", "-",
                              "--fill_times", "--comp_filepath", "@F@"],
    "generate trace-replay": ["generate", "--generator", "trace-replay", "--log", "@F@", "-o", "-"],
    "whatif --trace csv": ["whatif", "--trace", "@D:t.csv@/t.csv", "--meta",
                           "tests/data/whatif/two-stages.yaml", "-o", "@O@"],
    "whatif --trace parquet": ["whatif", "--trace", "@D:t.parquet@/t.parquet", "--meta",
                               "tests/data/whatif/two-stages.yaml", "-o", "@O@"],
    "whatif --meta": ["whatif", "--trace", "tests/data/whatif/two-stages.csv", "--meta", "@F@", "-o", "@O@"],
    "compare": ["compare", "@F@"],
    "compare --against": ["compare", STEPS, "--against", "@F@"],
    "compare --preset": ["compare", LOG, "--preset", "@F@"],
    "calibrate": ["calibrate", "@F@", "-o", "-"],
    "score": ["score", "@D:index.csv@"],
    "score logs": ["score", "@D:all_reduce.log@"],
    "score-steps": ["score-steps", "@D:vidur_validation.csv@"],
    "health": ["health", "@F@"],
    "report": ["report", "@F@", "-o", "-"],
    "sweep": ["sweep", "@F@", "-o", "@O@"],
    "goodput --from": ["goodput", "--from", "@F@", "--gpus", "8", "--gpu-mtbf", "1y", "--runs", "16"],
    "profile --from": ["profile", "--model", "llama3-8b", "--gpus", "1", "--from", "@F@", "-o", "@O@"],
    "run --workload": ["run", "--workload", "@F@", "--dry-run"],
    "plan --price": [*replaced(SCALE, "--global-batch", "8"), "--price", "@F@"],
    "plan --price of a model": ["plan", "--model", "llama3-8b", "--num-layers", "2", "--gpus", "8", "--gbs", "8", "--topology", "Spectrum-X:g=8", "--price", "@F@"],
    "plan --actual": [*replaced(SCALE, "--global-batch", "8"), "--actual", "@F@"],
    "plan --topology": ["plan", "--model", "llama3-8b", "--gpus", "8", "--gbs", "8", "--topology", "@F@"],
    "plan --metis-hostfile": replaced(METIS, "--metis-hostfile", "@F@"),
    "plan --metis-clusterfile": replaced(METIS, "--metis-clusterfile", "@F@"),
    "plan --price of Metis": [*METIS, "--price", "@F@"],
    "serve --token-file": ["serve", "--port", "0", "--address", "0.0.0.0", "--token-file", "@F@"],
}
