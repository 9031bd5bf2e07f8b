# SPDX-License-Identifier: GPL-2.0-only
"""Trains a small network on one GPU from a fixed seed and prints each loss with all its bits.

Run it once undisturbed, once with a dump and a restore on the way, and compare the two outputs with diff:

    python3 pytorch-steps.py 2000 >undisturbed
    setsid python3 pytorch-steps.py 2000 >disturbed </dev/null 2>&1 &
    pid=$(pgrep -f 'python3 pytorch-steps.py')
    criu dump -t $pid -D DIR; criu restore -d -D DIR    # some seconds later, as root
"""
import os
import struct
import sys

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch  # noqa: E402

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
torch.manual_seed(1)
torch.use_deterministic_algorithms(True)
gpu = torch.device("cuda")
net = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.Tanh(), torch.nn.Linear(2048, 512)).to(gpu)
optimizer = torch.optim.Adam(net.parameters())
for step in range(steps):
    data = torch.randn(256, 512, device=gpu)
    loss = ((net(data) - data) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, struct.pack(">f", loss.item()).hex(), flush=True)
