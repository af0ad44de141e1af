#!/usr/bin/env python3
"""Times a training step of a GPT on one GPU in PyTorch, to hold `lockstep simulate` against.

    bench/gpt_step_torch.py [--layers 24 --hidden 2048 --heads 16 --seq 2048 --mbs 1 --microbatches 1]
        [--simulated FILE] [--kernels]

The model is that of `--model gpt3-1.3b --num-layers N`: LayerNorm, biases, GELU MLP of four times the
width, learned positions, tied head; bf16 weights and activations, fp32 gradients and Adam masters. As in
Megatron-LM's mixed precision, weights' gradients are added to fp32 memory by the product itself, the
gradients' norm is taken, and the optimizer ends with a copy in bf16. Forward, loss, backward and
optimizer are captured in one CUDA graph, so that the host plays no part. Prints the median step time, the
SMs' clock meanwhile, with --simulated (what `lockstep simulate --json` printed) the error, and with
--kernels where the time goes.
"""
import argparse
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as functional


def add_product(sums, a, b):
    """sums (fp32) += a b (bf16), by one kernel where PyTorch has it."""
    try:
        torch.addmm(sums, a, b, out_dtype=torch.float32, out=sums)
    except (TypeError, RuntimeError, NotImplementedError) as problem:
        if "note" not in add_product.__dict__:
            add_product.note = str(problem).splitlines()[0]
            print(f"products and their sums are two kernels: {add_product.note}")
        sums.add_(a @ b)


class AddedGradient(torch.autograd.Function):
    """A linear layer whose weight's gradient is added to fp32 memory, as Megatron-LM's fused kernel does."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x)
        ctx.weight, ctx.bias = weight, bias
        return functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        rows = dy.flatten(0, -2)
        sums = ctx.weight.main_grad
        add_product(sums, rows.t(), x.flatten(0, -2))
        if ctx.bias is not None:
            ctx.bias.main_grad.add_(rows.sum(0))
        return dy @ ctx.weight, None, None


def linear(x, layer):
    return AddedGradient.apply(x, layer.weight, getattr(layer, "bias", None))


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
                   for part in linear(self.norm1(x), self.qkv).chunk(3, dim=-1))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(attended.transpose(1, 2).reshape(batch, length, hidden), self.out)
        return x + linear(functional.gelu(linear(self.norm2(x), self.up)), self.down)


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
        logits = linear(self.norm(x), self.words)
        return functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("layers", 24), ("hidden", 2048), ("heads", 16), ("seq", 2048), ("mbs", 1),
                        ("microbatches", 1), ("vocabulary", 50304), ("steps", 20)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--kernels", action="store_true", help="print the kernels that take longest")
    parser.add_argument("--simulated", help="what lockstep simulate --json printed")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("PyTorch sees no GPU")
    torch.manual_seed(1)
    model = Gpt(args).cuda().bfloat16()
    parameters = list(model.parameters())
    masters = [p.detach().float().requires_grad_() for p in parameters]
    for parameter, master in zip(parameters, masters):
        parameter.main_grad = master.grad = torch.zeros_like(master)
    gradients = [master.grad for master in masters]
    optimizer = torch.optim.AdamW(masters, lr=1e-4, fused=True, capturable=True)
    ids = torch.randint(args.vocabulary, (args.mbs, args.seq), device="cuda")
    targets = torch.randint(args.vocabulary, (args.mbs, args.seq), device="cuda")

    def step():
        torch._foreach_zero_(gradients)
        for _ in range(args.microbatches):
            for parameter in parameters:
                parameter.grad = None
            model(ids, targets).backward()
            rest = [p for p in parameters if p.grad is not None]  # norms and tables
            torch._foreach_add_([p.main_grad for p in rest], [p.grad for p in rest])
        torch.linalg.vector_norm(torch.stack(torch._foreach_norm(gradients)))
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
    events = []
    for _ in range(args.steps + 10):
        events.append((torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)))
        events[-1][0].record()
        graph.replay()
        events[-1][1].record()
    clocks = []
    while not events[-1][1].query():
        try:
            clocks.append(torch.cuda.clock_rate())
        except (ImportError, ModuleNotFoundError):  # PyTorch asks nvidia-ml-py
            clocks.append(0)
        time.sleep(0.02)
    torch.cuda.synchronize()
    times = [begin.elapsed_time(end) * 1e-3 for begin, end in events[10:]]
    median = statistics.median(times)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}: {median * 1e3:.2f} ms a step "
          f"({min(times) * 1e3:.2f} to {max(times) * 1e3:.2f}), SMs at {statistics.median(clocks or [0])} MHz")
    if args.simulated:
        with open(args.simulated, encoding="utf-8") as file:
            predicted = json.load(file)["total_s"]
        print(f"predicted {predicted * 1e3:.2f} ms: {100 * (predicted / median - 1):+.1f} %")
    if args.kernels:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            graph.replay()
            torch.cuda.synchronize()
        print(profile.key_averages().table(sort_by="cuda_time_total", row_limit=40, max_name_column_width=90))


if __name__ == "__main__":
    main()
