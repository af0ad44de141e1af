#!/usr/bin/env python3
"""Times a training step of a GPT on one GPU in PyTorch, to hold `lockstep simulate` against.

    bench/gpt_step_torch.py [--layers 24 --hidden 2048 --heads 16 --seq 2048 --mbs 1] [--predicted SECONDS]

The model is that of `--model gpt3-1.3b --num-layers N`: LayerNorm, biases, GELU MLP of four times the
width, learned positions, tied head; bf16 weights and activations, fp32 gradients and Adam masters (as
Megatron-LM's mixed precision). Forward, loss, backward and optimizer are captured in one CUDA graph, so
that the host plays no part. Prints the median step time and, with --predicted, the error.
"""
import argparse
import statistics
import sys

import torch
import torch.nn.functional as functional


class Layer(torch.nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = torch.nn.LayerNorm(hidden)
        self.qkv = torch.nn.Linear(hidden, 3 * hidden)
        self.out = torch.nn.Linear(hidden, hidden)
        self.norm2 = torch.nn.LayerNorm(hidden)
        self.up = torch.nn.Linear(hidden, 4 * hidden)
        self.down = torch.nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, length, hidden = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, hidden))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(torch.nn.Module):
    def __init__(self, args):
        super().__init__()
        self.words = torch.nn.Embedding(args.vocabulary, args.hidden)
        self.positions = torch.nn.Embedding(args.seq, args.hidden)
        self.layers = torch.nn.ModuleList(Layer(args.hidden, args.heads) for _ in range(args.layers))
        self.norm = torch.nn.LayerNorm(args.hidden)

    def forward(self, ids, targets):
        x = self.words(ids) + self.positions.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        logits = functional.linear(self.norm(x), self.words.weight)
        return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("layers", 24), ("hidden", 2048), ("heads", 16), ("seq", 2048), ("mbs", 1),
                        ("vocabulary", 50304), ("steps", 20)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--predicted", type=float, help="seconds a step, of lockstep simulate")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU")
    torch.manual_seed(1)
    model = Gpt(args).cuda().bfloat16()
    parameters = list(model.parameters())
    masters = [p.detach().float().requires_grad_() for p in parameters]
    for master in masters:
        master.grad = torch.zeros_like(master)
    optimizer = torch.optim.AdamW(masters, lr=1e-4, fused=True, capturable=True)
    ids = torch.randint(args.vocabulary, (args.mbs, args.seq), device="cuda")
    targets = torch.randint(args.vocabulary, (args.mbs, args.seq), device="cuda")

    def step():
        for p in parameters:
            p.grad = None
        model(ids, targets).backward()
        torch._foreach_copy_([m.grad for m in masters], [p.grad for p in parameters])
        optimizer.step()
        torch._foreach_copy_([p.data for p in parameters], masters)

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    times = []
    for i in range(args.steps + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        if i >= 3:
            times.append(begin.elapsed_time(end) * 1e-3)
    median = statistics.median(times)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}: {median * 1e3:.2f} ms a step "
          f"({min(times) * 1e3:.2f} to {max(times) * 1e3:.2f})")
    if args.predicted:
        print(f"predicted {args.predicted * 1e3:.2f} ms: {100 * (args.predicted / median - 1):+.1f} %")


if __name__ == "__main__":
    main()
