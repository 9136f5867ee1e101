"""Training steps of a small network in ttnn, beside torch's autograd and AdamW.

Two linear layers with GELU between, mean squared error, gradients by ttnn's own backward operations, and AdamW.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
import ttnn

from tools import compare, get, put

BATCH, INSIDE, HIDDEN, OUT, RATE, DECAY, STEPS = 64, 64, 128, 32, 0.01, 0.01, 2
BETAS, EPSILON = (0.9, 0.999), 1e-8
SHAPES = {"w1": (INSIDE, HIDDEN), "b1": (1, HIDDEN), "w2": (HIDDEN, OUT), "b2": (1, OUT)}


class OnDevice:
    """The network, its gradients and AdamW's moments on the device, float32.

    Args:
        parameters: where training begins.
        device: where it runs.
    """

    def __init__(self, parameters: dict[str, torch.Tensor], device: ttnn.Device) -> None:
        self.parameters = {name: put(values, device, ttnn.float32) for name, values in parameters.items()}
        self._moments = {name: [ttnn.zeros_like(p) for _ in range(2)] for name, p in self.parameters.items()}
        # By default operands of a product are rounded to TF32 and sums to 16 bits.
        self._precise = ttnn.init_device_compute_kernel_config(
            device.arch(), math_fidelity=ttnn.MathFidelity.HiFi4, fp32_dest_acc_en=True
        )
        self._steps = 0

    def _product(self, a: ttnn.Tensor, b: ttnn.Tensor, **options: bool) -> ttnn.Tensor:
        return ttnn.matmul(a, b, compute_kernel_config=self._precise, **options)

    def gradients(self, x: ttnn.Tensor, target: ttnn.Tensor) -> tuple[float, dict[str, ttnn.Tensor]]:
        """The loss, and its gradient by each parameter."""
        p = self.parameters
        before = ttnn.add(self._product(x, p["w1"]), p["b1"])
        hidden = ttnn.gelu(before)
        error = ttnn.subtract(ttnn.add(self._product(hidden, p["w2"]), p["b2"]), target)
        loss = float(get(ttnn.mean(ttnn.square(error))).flatten()[0])
        by_out = ttnn.multiply(error, 2 / (BATCH * OUT))
        by_hidden = self._product(by_out, p["w2"], transpose_b=True)
        by_before = ttnn.gelu_bw(by_hidden, before)[0]
        return loss, {
            "w1": self._product(x, by_before, transpose_a=True),
            "b1": ttnn.sum(by_before, dim=-2, keepdim=True, compute_kernel_config=self._precise),
            "w2": self._product(hidden, by_out, transpose_a=True),
            "b2": ttnn.sum(by_out, dim=-2, keepdim=True, compute_kernel_config=self._precise),
        }

    def update(self, gradients: dict[str, ttnn.Tensor]) -> None:
        """One step of AdamW, in float32 (`ttnn.moreh_adamw` takes bfloat16 alone)."""
        self._steps += 1
        for name, gradient in gradients.items():
            mean, square = self._moments[name]
            mean = ttnn.lerp(gradient, mean, BETAS[0])
            square = ttnn.lerp(ttnn.square(gradient), square, BETAS[1])
            self._moments[name] = [mean, square]
            root = ttnn.sqrt(ttnn.multiply(square, 1 / (1 - BETAS[1] ** self._steps)))
            step = ttnn.div(ttnn.multiply(mean, RATE / (1 - BETAS[0] ** self._steps)), ttnn.add(root, EPSILON))
            decayed = ttnn.multiply(self.parameters[name], 1 - RATE * DECAY)
            self.parameters[name] = ttnn.subtract(decayed, step)


def main() -> None:
    """Train on both and compare gradients, losses and what the parameters have changed by."""
    torch.manual_seed(4)
    start = {name: torch.randn(shape) / shape[0] ** 0.5 / 2 for name, shape in SHAPES.items()}
    x, target = torch.randn(BATCH, INSIDE), torch.randn(BATCH, OUT)
    p = {name: values.clone().requires_grad_() for name, values in start.items()}
    optimizer = torch.optim.AdamW(p.values(), lr=RATE, betas=BETAS, eps=EPSILON, weight_decay=DECAY)
    device = ttnn.open_device(device_id=0)
    try:
        network = OnDevice(start, device)
        placed, wanted = put(x, device, ttnn.float32), put(target, device, ttnn.float32)
        for step in range(1, STEPS + 1):
            optimizer.zero_grad()
            loss = F.mse_loss(F.gelu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"], target)
            loss.backward()
            got, gradients = network.gradients(placed, wanted)
            print(f"step {step}: loss {got:.4f}, torch {float(loss.detach()):.4f}")
            for name, parameter in p.items():
                assert parameter.grad is not None
                compare(f"  gradient of {name}", get(gradients[name]), parameter.grad)
            optimizer.step()
            network.update(gradients)
        for name, parameter in p.items():
            changed = get(network.parameters[name]) - start[name]
            compare(f"change of {name}", changed, parameter.detach() - start[name])
    finally:
        ttnn.close_device(device)


if __name__ == "__main__":
    main()
