"""What a faster network would bring, asked as in a notebook: a step, memory of its stages, a sweep, as Arrow tables.

PYTHONPATH=build/python python3 examples/embedding/notebook.py
"""
import lockstep

job = {"model": "llama3-8b", "gpus": 32, "tp": 4, "pp": 2, "global_batch": 32, "sp": True}

step = lockstep.simulate(**job, topology="Spectrum-X:g=32")
print(f"a step takes {step['total_s']:.3f} s; compute does not hide {step['exposed_s']:.3f} s of communication")
stages = step.tables["memory.stages"]
print(f"{stages.num_rows} stages: {', '.join(stages.column_names)}")

rates = lockstep.sweep({"command": "simulate", "flags": job, "outputs": ["total_s", "exposed_s"],
                        "axes": [{"topology": [f"Spectrum-X:g=32,nic={rate}Gbps" for rate in (100, 200, 400)]}]})
for row in rates.select(["topology", "total_s"]).to_pylist():
    print(f"{row['topology']}: {row['total_s']:.3f} s")
