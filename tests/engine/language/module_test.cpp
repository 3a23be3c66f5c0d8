// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/module.h"

#include <algorithm>
#include <cstring>

#include "tests/engine/language/language_testing.h"

namespace vitrine::engine {
namespace {

int floorDiv(int a, int b) {
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}
int floorMod(int a, int b) {
    return a - floorDiv(a, b) * b;
}

struct MaskCase {
    std::string body; ///< of "def m(b, h, q, k):"
    MaskFunction expected;
};

TEST(PyModule, EveryConstructOfMasks) {
    const MaskCase cases[] = {
        {"return q >= k", [](int, int, int q, int k) { return q >= k; }},
        {"return (q > k) & (q < k + 5) | (k == 0) & ~(h == 1)",
         [](int, int h, int q, int k) { return (q > k && q < k + 5) || (k == 0 && h != 1); }},
        {"return q > k and not h == 1 or k == 0", [](int, int h, int q, int k) { return (q > k && h != 1) || k == 0; }},
        {"return k <= q < k + 5", [](int, int, int q, int k) { return k <= q && q < k + 5; }},
        {"return (q >= k) if window is None else (q - k < window)", [](int, int, int q, int k) { return q - k < 6; }},
        {"return q > k if h > 0 else k >= q", [](int, int h, int q, int k) { return h > 0 ? q > k : k >= q; }},
        {"return (q - k) // 3 == -1", [](int, int, int q, int k) { return floorDiv(q - k, 3) == -1; }},
        {"return (q - k) % 3 == 2", [](int, int, int q, int k) { return floorMod(q - k, 3) == 2; }},
        {"return (q - k) / 2 > 1.25", [](int, int, int q, int k) { return (q - k) / 2.0 > 1.25; }},
        {"return (q ^ k) & 1 == 0", [](int, int, int q, int k) { return ((q ^ k) & 1) == 0; }},
        {"return (q << 1) >> 2 == k", [](int, int, int q, int k) { return (q << 1) >> 2 == k; }},
        {"return (q - k).abs().clamp(min=2, max=7) == 2", [](int, int, int q, int k) { return std::abs(q - k) <= 2; }},
        {"return torch.abs(q - k).to(torch.float32).int().long() <= 4",
         [](int, int, int q, int k) { return std::abs(q - k) <= 4; }},
        {"return torch.logical_and(q >= k, torch.logical_not(h == 0))",
         [](int, int h, int q, int k) { return q >= k && h != 0; }},
        {"return torch.where(h == 0, q >= k, k >= q)",
         [](int, int h, int q, int k) { return h == 0 ? q >= k : k >= q; }},
        {"return torch.minimum(q, k) < torch.maximum(q - 4, h)",
         [](int, int h, int q, int k) { return std::min(q, k) < std::max(q - 4, h); }},
        {"return max(q, k) - min(q, k) <= 3", [](int, int, int q, int k) { return std::abs(q - k) <= 3; }},
        {"return table[q] == table[k]", [](int, int, int q, int k) { return q % 5 == k % 5; }},
        {"return grid[b, k] > 6", [](int b, int, int, int k) { return 24 * b + k > 6; }},
        {"return grid[b][k] > 6", [](int b, int, int, int k) { return 24 * b + k > 6; }},
        {"row = grid[b]\n    return row[k] > row[3]", [](int, int, int, int k) { return k > 3; }},
        {"return table[-1] == table[k]", [](int, int, int, int k) { return k % 5 == 3; }},
        {"lo, hi = bounds[h]\n    return (k >= lo) & (k < hi)",
         [](int, int h, int, int k) { return k >= h && k < h + 4; }},
        {"return ((k >= starts) & (k < starts + 2)).any()", [](int, int, int, int k) { return k % 6 < 2 && k < 20; }},
        {"return (k >= starts).sum() % 2 == 0",
         [](int, int, int, int k) { return (k / 6 + 1 > 4 ? 4 : k / 6 + 1) % 2 == 0; }},
        {"return torch.bucketize(k, starts, right=True) == 2", [](int, int, int, int k) { return k >= 6 && k < 12; }},
        {"return torch.isin(k, torch.tensor([1, 4, 9]))",
         [](int, int, int, int k) { return k == 1 || k == 4 || k == 9; }},
        {"return k in (1, 4, 9)", [](int, int, int, int k) { return k == 1 || k == 4 || k == 9; }},
        {"r = q >= k\n    for i in range(3):\n        if i == 1:\n            continue\n        r = r & (k != i)\n    "
         "return r",
         [](int, int, int q, int k) { return q >= k && k != 0 && k != 2; }},
        {"r = k < 0\n    for start in [0, 8]:\n        r |= (k >= start) & (k < start + 3)\n    return r",
         [](int, int, int, int k) { return k < 3 || (k >= 8 && k < 11); }},
        {"assert window > 0, 'positive'\n    return q - k < window", [](int, int, int q, int k) { return q - k < 6; }},
        {"return helper(q, k=k, scale=2)", [](int, int, int q, int k) { return 2 * q >= k; }},
        {"x, y = divided(q)\n    return x == y", [](int, int, int q, int) { return q / 5 == q % 5; }},
        {"return (lambda a, *rest: a > rest[0])(q, k, h)", [](int, int, int q, int k) { return q > k; }},
        {"return any(k == i for i in range(0, 24, 7))", [](int, int, int, int k) { return k % 7 == 0; }},
        {"return all([q >= k, h != 1])", [](int, int h, int q, int k) { return q >= k && h != 1; }},
        {"return sum(int(k >= s) for s in (3, 6)) == 1", [](int, int, int, int k) { return k >= 3 && k < 6; }},
        {"return q.new_ones((), dtype=torch.bool) & (k.gt(3))", [](int, int, int, int k) { return k > 3; }},
        {"return (rest := q % 4) == k % 4 and rest >= 0", [](int, int, int q, int k) { return q % 4 == k % 4; }},
        {"return pow(q - k, 2) <= 9", [](int, int, int q, int k) { return (q - k) * (q - k) <= 9; }},
        {"return abs(q - k) <= {'a': 2}['a']", [](int, int, int q, int k) { return std::abs(q - k) <= 2; }},
        {"return b.new_zeros((), dtype=torch.bool) | torch.eq(q, k)", [](int, int, int q, int k) { return q == k; }},
        {"return not (q < k)", [](int, int, int q, int k) { return q >= k; }},
        {"return q * 1.0 >= k - 0.5", [](int, int, int q, int k) { return q >= k - 0.5; }},
        {"return flags[k] != flags[q]", [](int, int, int q, int k) { return (q > 10) != (k > 10); }},
        {"return cube[b, h, k] > 30", [](int b, int h, int, int k) { return (b * 3 + h) * 24 + k > 30; }},
        {"return cube4[b, h, k, 1] > 60", [](int b, int h, int, int k) { return ((b * 3 + h) * 24 + k) * 2 + 1 > 60; }},
        {"return wide[0, h, k] > 40", [](int, int h, int, int k) { return h * 24 + k > 40; }},
        {"if isinstance(window, int) and not isinstance(q, tuple):\n        return k < window\n    else:\n        "
         "return k > window",
         [](int, int, int, int k) { return k < 6; }},
    };
    const std::string prefix = "import torch, math\n"
                               "window = 6\n"
                               "table = torch.arange(24) % 5\n"
                               "grid = torch.arange(48).view(2, 24)\n"
                               "bounds = torch.stack([torch.arange(3), torch.arange(3) + 4], dim=1)\n"
                               "starts = torch.tensor([0, 6, 12, 18])\n"
                               "flags = torch.arange(24) > 10\n"
                               "cube = torch.arange(144).reshape(2, 3, 24)\n"
                               "cube4 = torch.arange(288).reshape(2, 3, 24, 2)\n"
                               "wide = torch.arange(144).reshape(2, 3, 24)\n"
                               "def helper(a, /, *, k, scale=1): return a * scale >= k\n"
                               "def divided(i): return i // 5, i % 5\n";
    for (const MaskCase& item : cases) {
        SCOPED_TRACE(item.body);
        expectMaskOf(prefix + "def m(b, h, q, k):\n    " + item.body + "\n", "m", item.expected);
    }
}

TEST(PyModule, EveryConstructOfScores) {
    struct Case {
        std::string expression;
        ScoreFunction expected;
    };
    const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
    const Case cases[] = {
        {"s * 2 + (q - k)", [](double s, int, int, int q, int k) { return s * 2 + q - k; }},
        {"torch.tanh(s / 2) * 2", [](double s, int, int, int, int) { return 2 * std::tanh(s / 2); }},
        {"torch.where(q >= k, s, -float('inf'))",
         [](double s, int, int, int q, int k) { return q >= k ? s : -INFINITY; }},
        {"torch.where(q >= k, s, -torch.inf)", [](double s, int, int, int q, int k) { return q >= k ? s : -INFINITY; }},
        {"s.exp() + s.exp2() + torch.expm1(s)",
         [](double s, int, int, int, int) { return std::exp(s) + std::exp2(s) + std::expm1(s); }},
        {"torch.log(s.abs() + 1) + torch.log2(s * s + 1) + torch.log1p(s.square())",
         [](double s, int, int, int, int) {
             return std::log(std::fabs(s) + 1) + std::log2(s * s + 1) + std::log1p(s * s);
         }},
        {"torch.sqrt(s.abs()) + torch.rsqrt(s.abs() + 1)",
         [](double s, int, int, int, int) { return std::sqrt(std::fabs(s)) + 1 / std::sqrt(std::fabs(s) + 1); }},
        {"s.sigmoid() + torch.nn.functional.silu(s)",
         [=](double s, int, int, int, int) { return sigmoid(s) + s * sigmoid(s); }},
        {"F.gelu(s) + F.relu(s) + F.softplus(s)",
         [](double s, int, int, int, int) {
             return 0.5 * s * (1 + std::erf(s / std::sqrt(2.0))) + std::max(s, 0.0) + std::log1p(std::exp(s));
         }},
        {"torch.sin(s) + torch.cos(s) + torch.erf(s)",
         [](double s, int, int, int, int) { return std::sin(s) + std::cos(s) + std::erf(s); }},
        {"torch.floor(s) + s.ceil() + s.round() + s.trunc()",
         [](double s, int, int, int, int) { return std::floor(s) + std::ceil(s) + std::nearbyint(s) + std::trunc(s); }},
        {"s ** 2 + torch.pow(s, 3)", [](double s, int, int, int, int) { return s * s + s * s * s; }},
        {"s.clamp(-1, 1) + s.clamp_min(0)",
         [](double s, int, int, int, int) { return std::clamp(s, -1.0, 1.0) + std::max(s, 0.0); }},
        {"s + slopes[h] * (k - q)",
         [](double s, int, int h, int q, int k) { return s + std::exp2(-2.0 * (h + 1)) * (k - q); }},
        {"s + bias[q][k]", [](double s, int, int, int q, int k) { return s + (q * 24 + k) * 0.5; }},
        {"s + torch.dot(left[q], right[k])",
         [](double s, int, int, int q, int k) { return s + 2.0 * q * k + (2.0 * q + 1) * (k + 1); }},
        {"s + torch.exp2(-((h + 1) * 8.0 / 4)) * (k - q)",
         [](double s, int, int h, int q, int k) { return s + std::exp2(-2.0 * (h + 1)) * (k - q); }},
        {"s + scalar", [](double s, int, int, int, int) { return s + 3; }},
        {"s + math.log2(8) + math.sqrt(4) + math.pi",
         [](double s, int, int, int, int) { return s + 5 + 3.14159265358979; }},
        {"s + (q - k).float() / 4 + (q // 2).to(s.dtype)",
         [](double s, int, int, int q, int k) { return s + (q - k) / 4.0 + floorDiv(q, 2); }},
        {"s * (q > k)", [](double s, int, int, int q, int k) { return s * (q > k); }},
        {"torch.logaddexp(s, s) if False else s + True", [](double s, int, int, int, int) { return s + 1; }},
        {"s + (-7 // 2) + (-7 % 3) + 2 ** -1 + 7 / 2 + (5 & 3 | 8 ^ 1) + (1 << 4 >> 1) + ~3",
         [](double s, int, int, int, int) { return s - 4 + 2 + 0.5 + 3.5 + ((5 & 3) | (8 ^ 1)) + 8 - 4; }},
        {"s + F.leaky_relu(s, 0.1) + F.elu(s)",
         [](double s, int, int, int, int) { return s + (s < 0 ? 0.1 * s : s) + (s < 0 ? std::expm1(s) : s); }},
        {"s - torch.remainder(q - k, 5) + torch.fmod(q - k, 5)",
         [](double s, int, int, int q, int k) { return s - floorMod(q - k, 5) + (q - k) % 5; }},
        {"s + torch.div(q - k, 3, rounding_mode='trunc') + (q - k).floor_divide(3)",
         [](double s, int, int, int q, int k) { return s + static_cast<double>((q - k) / 3) + floorDiv(q - k, 3); }},
    };
    const std::string prefix = "import torch\nimport math\nimport torch.nn.functional as F\n"
                               "slopes = torch.exp2(-2.0 * torch.arange(1, 4))\n"
                               "bias = torch.arange(576).reshape(24, 24) * 0.5\n"
                               "left = torch.stack((torch.arange(24.0) * 2, torch.arange(24.0) * 2 + 1), dim=-1)\n"
                               "right = torch.stack((torch.arange(24.0), torch.arange(24.0) + 1), dim=-1)\n"
                               "scalar = torch.tensor(3)\n";
    for (const Case& item : cases) {
        SCOPED_TRACE(item.expression);
        expectScoreOf(prefix + "def f(s, b, h, q, k):\n    return " + item.expression + "\n", "f", item.expected);
    }
}

TEST(PyModule, ConstantTensorsAreAsPyTorchs) {
    // Each expression is a table of 24 integers (or booleans) that the mask compares with what it should be.
    struct Case {
        std::string expression;
        std::function<int(int)> expected;
    };
    const Case cases[] = {
        {"torch.arange(24)", [](int i) { return i; }},
        {"torch.arange(23, -1, -1)", [](int i) { return 23 - i; }},
        {"torch.repeat_interleave(torch.arange(4), 6)", [](int i) { return i / 6; }},
        {"torch.repeat_interleave(torch.arange(3), torch.tensor([3, 20, 1]))",
         [](int i) { return i < 3    ? 0
                            : i < 23 ? 1
                                     : 2; }},
        {"torch.cumsum(torch.ones(24, dtype=torch.int32), dim=0)", [](int i) { return i + 1; }},
        {"torch.cat([torch.zeros(10), torch.ones(14)]).int()", [](int i) { return i < 10 ? 0 : 1; }},
        {"torch.unique_consecutive(torch.arange(48) // 2)", [](int i) { return i; }},
        {"torch.unique_consecutive(torch.arange(72) // 3, return_counts=True)[1]", [](int) { return 3; }},
        {"torch.searchsorted(torch.tensor([5, 10, 15]), torch.arange(24), right=True)",
         [](int i) {
             return i < 5 ? 0 : i < 10 ? 1 : i < 15 ? 2 : 3;
         }},
        {"torch.bincount(torch.arange(48) % 24)", [](int) { return 2; }},
        {"torch.linspace(0, 23, 24).round().long()", [](int i) { return i; }},
        {"torch.arange(48)[::2]", [](int i) { return 2 * i; }},
        {"torch.arange(48).view(24, 2)[:, 1]", [](int i) { return 2 * i + 1; }},
        {"torch.arange(48).reshape(2, 24).t()[:, 1]", [](int i) { return 24 + i; }},
        {"torch.arange(48)[torch.arange(24) * 2]", [](int i) { return 2 * i; }},
        {"torch.arange(48)[torch.arange(48) % 2 == 1]", [](int i) { return 2 * i + 1; }},
        {"torch.where(torch.arange(24) < 5, 1, torch.arange(24))", [](int i) { return i < 5 ? 1 : i; }},
        {"torch.full((24,), 7)", [](int) { return 7; }},
        {"torch.tensor([[1, 2, 3], [4, 5, 6]]).flatten().repeat(4)", [](int i) { return i % 6 + 1; }},
        {"torch.arange(24).flip(0)", [](int i) { return 23 - i; }},
        {"torch.roll(torch.arange(24), 3)", [](int i) { return (i + 21) % 24; }},
        {"torch.sort(torch.arange(24) * 5 % 24)[0]", [](int i) { return i; }},
        {"torch.argsort(torch.arange(24) * 5 % 24)", [](int i) { return i * 5 % 24; }},
        {"(torch.arange(24)[:, None] >= torch.arange(24)[None, :]).sum(dim=1)", [](int i) { return i + 1; }},
        {"torch.tril(torch.ones(24, 24)).sum(-1).int()", [](int i) { return i + 1; }},
        {"torch.eye(24, dtype=torch.int64).cumsum(0)[:, 3]", [](int i) { return i >= 3 ? 1 : 0; }},
        {"torch.diff(torch.arange(25) ** 2)", [](int i) { return 2 * i + 1; }},
        {"torch.tensor([i * i for i in range(24)], dtype=torch.int32)", [](int i) { return i * i; }},
        {"torch.stack([torch.arange(12), torch.arange(12)], dim=1).view(-1)", [](int i) { return i / 2; }},
        {"torch.arange(24).clamp(3, 9)", [](int i) { return std::clamp(i, 3, 9); }},
        {"torch.arange(24) // 5 * 2 + torch.arange(24) % 3", [](int i) { return i / 5 * 2 + i % 3; }},
        {"torch.arange(200, 224).to(torch.uint8) + 50", [](int i) { return (i + 250) % 256; }},
        {"F.pad(torch.arange(20), (2, 2), value=-1)", [](int i) { return i < 2 || i >= 22 ? -1 : i - 2; }},
        {"torch.nonzero(torch.arange(48) % 2 == 0).squeeze(1)", [](int i) { return 2 * i; }},
        {"filled", [](int i) { return i < 4   ? 9
                                      : i < 8 ? 5
                                              : i; }},
        {"diagonal", [](int i) { return i == 5 ? 0 : 1; }},
    };
    const std::string prefix =
        "import torch\nimport torch.nn.functional as F\n"
        "filled = torch.arange(24)\nfilled[:4] = 9\nfilled[torch.tensor([4, 5, 6, 7])] = 5\n"
        "square = torch.ones(24, 24, dtype=torch.int32)\nsquare.diagonal().zero_()\ndiagonal = square[5]\n";
    for (const Case& item : cases) {
        SCOPED_TRACE(item.expression);
        std::string wanted;
        for (int i = 0; i < kGrid; ++i) {
            wanted += (i > 0 ? ", " : "") + std::to_string(item.expected(i));
        }
        std::string text = prefix;
        text += "found = " + item.expression + "\nwanted = torch.tensor([" + wanted + "])\n";
        text += "assert found.shape == (24,), found.shape\n";
        text += "def m(b, h, q, k):\n    return found[k] == wanted[k]\n";
        expectMaskOf(text, "m", [](int, int, int, int) { return true; });
    }
}

TEST(PyModule, FactoriesClosuresAndCombinations) {
    const std::string text = R"(
from functools import partial
import functools
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import and_masks, or_masks, create_block_mask, flex_attention
from attn_gym.masks import causal_mask, generate_sliding_window

flex_attention = torch.compile(flex_attention, dynamic=False)
torch.manual_seed(0)
query = torch.randn(2, 4, 128, 64, device="cuda")
WINDOW = 4

def window_of(size: int = 3, *, sides: int = 1):
    """Looks back."""
    if size < 1:
        raise ValueError(f"size must be positive, got {size}")
    def inner(b, h, q_idx, kv_idx):
        near = q_idx - kv_idx <= size
        return near & (q_idx >= kv_idx) if sides == 1 else (q_idx - kv_idx).abs() <= size
    inner.__name__ = f"window_{size}"
    return inner

def with_size(b, h, q_idx, kv_idx, size):
    return (q_idx - kv_idx).abs() < size

def mod(size, b, h, q_idx, kv_idx):
    return q_idx - kv_idx < size

class Masks:
    limit = 5
    def __init__(self, offset):
        self.offset = offset
    @staticmethod
    def plain(b, h, q, k):
        return q >= k
    def shifted(self, b, h, q, k):
        return q + self.offset >= k
    def make(self):
        def inner(b, h, q, k):
            return k < self.limit + self.offset
        return inner

narrow = partial(mod, 2)
fixed = functools.partial(with_size, size=3)
both = and_masks(causal_mask, window_of(WINDOW, sides=2), lambda b, h, q, k: k != 2)
one = or_masks(both)
block_mask = create_block_mask(both, B=None, H=None, Q_LEN=UNKNOWN, KV_LEN=UNKNOWN)
out = flex_attention(query, query, query, block_mask=block_mask)

if __name__ == "__main__":
    import argparse
    main(argparse.ArgumentParser().parse_args())
)";
    const std::pair<std::string, MaskFunction> cases[] = {
        {"window_of(5)", [](int, int, int q, int k) { return q >= k && q - k <= 5; }},
        {"window_of(size=2, sides=2)", [](int, int, int q, int k) { return std::abs(q - k) <= 2; }},
        {"narrow", [](int, int, int q, int k) { return q - k < 2; }},
        {"fixed", [](int, int, int q, int k) { return std::abs(q - k) < 3; }},
        {"both", [](int, int, int q, int k) { return q >= k && q - k <= 4 && k != 2; }},
        {"one", [](int, int, int q, int k) { return q >= k && q - k <= 4 && k != 2; }},
        {"block_mask", [](int, int, int q, int k) { return q >= k && q - k <= 4 && k != 2; }},
        {"and_masks()", [](int, int, int, int) { return true; }},
        {"generate_sliding_window(WINDOW)", [](int, int, int q, int k) { return q >= k && q - k <= 4; }},
        {"Masks.plain", [](int, int, int q, int k) { return q >= k; }},
        {"Masks(3).shifted", [](int, int, int q, int k) { return q + 3 >= k; }},
        {"Masks(3).make()", [](int, int, int, int k) { return k < 8; }},
        {"lambda b, h, q, k: q == k", [](int, int, int q, int k) { return q == k; }},
        {"or_masks(narrow, lambda b, h, q, k: k < 3) if WINDOW > 3 else narrow",
         [](int, int, int q, int k) { return q - k < 2 || k < 3; }},
    };
    for (const auto& [expression, expected] : cases) {
        expectMaskOf(text, expression, expected);
    }
}

TEST(PyModule, CapturesHaveNamesContentsAndStayTheSameProgram) {
    const std::string text = "import torch\n"
                             "ids = torch.tensor([0, 0, 1, 1], dtype=torch.int32)\n"
                             "limit = torch.tensor(2)\n"
                             "def m(b, h, q, k):\n    return (ids[q] == ids[k]) & (k < limit) & (lengths[b] > k)\n";
    ProgramOptions options;
    const std::vector<std::int32_t> lengths = {3, 4};
    CapturedTensor captured{kernels::DType::I32, kernels::Shape{2}, nullptr};
    captured.data = std::make_shared<std::vector<std::byte>>(reinterpret_cast<const std::byte*>(lengths.data()),
                                                             reinterpret_cast<const std::byte*>(lengths.data() + 2));
    options.tensors["lengths"] = captured;
    const ChosenProgram program = makeMod(text, "m", true, options);
    ASSERT_EQ(program.program.captures.size(), 3U);
    ASSERT_EQ(program.captures.size(), 3U);
    std::map<std::string, const CapturedTensor*> byName;
    for (std::size_t i = 0; i < 3; ++i) {
        byName[program.program.captures[i].name] = &program.captures[i];
    }
    ASSERT_TRUE(byName.count("ids") == 1 && byName.count("limit") == 1 && byName.count("lengths") == 1);
    EXPECT_EQ(byName["ids"]->dtype, kernels::DType::I32);
    EXPECT_EQ(byName["limit"]->dtype, kernels::DType::I64);
    EXPECT_EQ(byName["limit"]->shape.rank(), 0);
    ASSERT_EQ(byName["lengths"]->data->size(), 8U);
    EXPECT_EQ(std::memcmp(byName["lengths"]->data->data(), lengths.data(), 8), 0);

    // Other contents, and another length: the same program.
    std::string other = text;
    other.replace(other.find("[0, 0, 1, 1]"), 12, "[0, 1, 2, 3, 4, 5]");
    other.replace(other.find("tensor(2)"), 9, "tensor(9)");
    EXPECT_EQ(kernels::programKey(makeMod(other, "m", true, options).program), kernels::programKey(program.program));

    // Unknown contents make a program that cannot run yet.
    options.tensors["lengths"].data = nullptr;
    const ChosenProgram unbound = makeMod(text, "m", true, options);
    EXPECT_THROW(unbound.binding(), base::BadInput);

    // What the user gives wins over the module's own tensor.
    options.tensors["ids"] = captured;
    EXPECT_EQ(makeMod(text, "m", true, options).captures.size(), 3U);

    // Gradients: of tensors that the user gives, and of those that ask for them.
    const std::string score = "import torch\nfixed = torch.ones(3)\nlearned = torch.ones(3, requires_grad=True)\n"
                              "def f(s, b, h, q, k):\n    return s + fixed[h] + learned[h] + given[h]\n";
    CapturedTensor given{kernels::DType::F32, kernels::Shape{3}, std::make_shared<std::vector<std::byte>>(12)};
    ProgramOptions scores;
    scores.tensors["given"] = given;
    for (const kernels::ProgramCapture& capture : makeMod(score, "f", false, scores).program.captures) {
        EXPECT_EQ(capture.differentiable, capture.name != "fixed") << capture.name;
    }
}

TEST(PyModule, SlidersAndIntegersBecomeScalars) {
    const std::string text = "def factory(window: int, scale: float = 1.0):\n"
                             "    half = window // 2\n"
                             "    def m(b, h, q, k):\n        return (q - k) * scale <= half + EXTRA\n"
                             "    return m\n";
    ProgramOptions options;
    options.integers["EXTRA"] = 1;
    options.sliders["window"] = 8;
    options.sliders["scale"] = 2.0;
    const ChosenProgram first = makeMod(text, "factory(100)", true, options);
    expectMask(first, [](int, int, int q, int k) { return (q - k) * 2.0 <= 5; }, "window 8");
    ASSERT_EQ(first.program.captures.size(), 2U);
    options.sliders["window"] = 4;
    const ChosenProgram second = makeMod(text, "factory(100)", true, options);
    EXPECT_EQ(kernels::programKey(first.program), kernels::programKey(second.program));
    expectMask(second, [](int, int, int q, int k) { return (q - k) * 2.0 <= 3; }, "window 4");
    // A slider that shapes the program makes another one, with a note.
    const std::string loop =
        "N = 3\ndef m(b, h, q, k):\n    r = q >= k\n    for i in range(N):\n        r = r & (k != i)\n    return r\n";
    ProgramOptions count;
    count.sliders["N"] = 2;
    const ChosenProgram unrolled = makeMod(loop, "m", true, count);
    expectMask(unrolled, [](int, int, int q, int k) { return q >= k && k != 0 && k != 1; }, "unrolled");
    EXPECT_TRUE(std::any_of(unrolled.notes.begin(), unrolled.notes.end(),
                            [](const std::string& note) { return note.find("slider") != std::string::npos; }));
}

TEST(PyModule, OffersWhatAPickerShows) {
    const std::string text = "import torch\n"
                             "# Looks back only.\ndef causal(b, h, q_idx, kv_idx):\n    return q_idx >= kv_idx\n"
                             "def cap(score, b, h, q_idx, kv_idx):\n    \"\"\"Caps.\"\"\"\n    return score\n"
                             "def window(size: int, extra=2):\n    \"\"\"A window.\n\n    More.\n    \"\"\"\n"
                             "    def inner(b, h, q, k):\n        return q - k < size\n    return inner\n"
                             "both = and_masks(causal, window(3))\nshort = lambda b, h, q, k: q == k\n"
                             "def main(device):\n    print(device)\ndef _private(b, h, q, k): return q > k\n";
    const PyFile file{"offers.py", text};
    const std::vector<ProgramOffer> offers = PyModule::parse(std::span(&file, 1)).offers();
    ASSERT_EQ(offers.size(), 5U);
    EXPECT_EQ(offers[0].name, "causal");
    EXPECT_EQ(offers[0].kind, ProgramOffer::Kind::Mask);
    EXPECT_EQ(offers[0].documentation, "Looks back only.");
    EXPECT_EQ(offers[0].place.line, 3);
    EXPECT_EQ(offers[1].kind, ProgramOffer::Kind::Score);
    EXPECT_EQ(offers[1].documentation, "Caps.");
    EXPECT_EQ(offers[2].kind, ProgramOffer::Kind::Factory);
    EXPECT_EQ(offers[2].documentation, "A window.");
    ASSERT_EQ(offers[2].parameters.size(), 2U);
    EXPECT_EQ(offers[2].parameters[0].name, "size");
    EXPECT_EQ(offers[2].parameters[0].annotation, "int");
    EXPECT_EQ(offers[2].parameters[1].defaultText, "2");
    EXPECT_EQ(offers[3].name, "both");
    EXPECT_EQ(offers[4].name, "short");
}

TEST(PyModule, SpansPointAtTheText) {
    const std::string text = "def m(b, h, q, k):\n    near = q - k < 5\n    return (q >= k) & near\n";
    const ChosenProgram program = makeMod(text, "m", true);
    const kernels::ProgramNode& result = program.program.at(program.program.result);
    ASSERT_GE(result.span.source, 0);
    EXPECT_EQ(program.program.sources[static_cast<std::size_t>(result.span.source)], text);
    EXPECT_EQ(text.substr(static_cast<std::size_t>(result.span.begin),
                          static_cast<std::size_t>(result.span.end - result.span.begin)),
              "(q >= k) & near");
}

TEST(PyModule, SeveralFilesShareAScope) {
    const std::vector<PyFile> files = {
        {"a.py", "SIZE = 3\ndef base(b, h, q, k):\n    return q >= k\n"},
        {"b.py", "from a import base, SIZE\ndef m(b, h, q, k):\n    return base(b, h, q, k) & (q - k < SIZE)\n"}};
    const ChosenProgram program = PyModule::parse(files).mask("m");
    expectMask(program, [](int, int, int q, int k) { return q >= k && q - k < 3; }, "two files");
}

} // namespace
} // namespace vitrine::engine
