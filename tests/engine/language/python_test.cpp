// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Python and PyTorch around programs as published files have them: classes, registries, strings, tables, narrow
// integers.
#include <array>
#include <cmath>

#include "tests/engine/language/language_testing.h"

namespace vitrine::engine {
namespace {

struct FileCase {
    std::string text;
    std::string expression;
    MaskFunction expected;
};

const std::string kWindow = "    return lambda b, h, q, k: (q - k).abs() < w\n";

TEST(LanguagePython, ClassesHaveParentsAndClassMethods) {
    const FileCase cases[] = {
        {"class A:\n"
         "    def __init__(self, w): self.w = w\n"
         "    def near(self, q, k): return (q - k).abs() < self.w\n"
         "class B(A):\n"
         "    def __init__(self, w):\n"
         "        super().__init__(w + 1)\n"
         "    def near(self, q, k): return super().near(q, k) | (q == 0)\n"
         "    def __call__(self, b, h, q, k): return self.near(q, k)\n",
         "B(3)", [](int, int, int q, int k) { return std::abs(q - k) < 4 || q == 0; }},
        {"class Module(torch.nn.Module):\n"
         "    def __init__(self):\n"
         "        super().__init__()\n"
         "        self.w = 2\n"
         "    def mask(self, b, h, q, k): return (q - k).abs() < self.w\n",
         "Module().mask", within(2)},
        {"class Builder:\n    scale = 2\n    @classmethod\n    def make(cls, n):\n        w = n * cls.scale\n        "
         "return lambda b, h, q, k: (q - k).abs() < w\n",
         "Builder.make(3)", within(6)},
        {"from dataclasses import dataclass\n@dataclass\nclass Base:\n    w: int = 1\n@dataclass\nclass Wide(Base):\n"
         "    times: int = 2\n    def __post_init__(self):\n        self.w = self.w * self.times\n"
         "    def __call__(self, b, h, q, k): return (q - k).abs() < self.w\n",
         "Wide(3)", within(6)},
        {"from collections import namedtuple\nP = namedtuple('P', 'left, right')\np = P(2, right=3)\n"
         "def m(b, h, q, k): return (q - k <= p.left) & (k - q <= p.right)\n",
         "m", [](int, int, int q, int k) { return q - k <= 2 && k - q <= 3; }},
        {"from types import SimpleNamespace\nc = SimpleNamespace(w=5)\ndef m(b, h, q, k): return (q - k).abs() < c.w\n",
         "m", within(5)},
        {"class A: pass\nclass B(A): pass\nw = 3 if isinstance(B(), A) else 9\n"
         "def m(b, h, q, k): return (q - k).abs() < w\n",
         "m", within(3)},
    };
    for (const FileCase& item : cases) {
        SCOPED_TRACE(item.text);
        expectMaskOf(item.text, item.expression, item.expected);
    }
}

TEST(LanguagePython, CallsThatChangeGlobalsAreReached) {
    const FileCase cases[] = {
        {"W = 3\ndef set_w(n):\n    global W\n    W = n\nset_w(7)\ndef m(b, h, q, k): return (q - k).abs() < W\n", "m",
         within(7)},
        {"R = {}\ndef register(name):\n    def deco(fn):\n        R[name] = fn\n        return fn\n    return deco\n"
         "@register('near')\ndef near(b, h, q, k): return (q - k).abs() < 4\n",
         "R['near']", within(4)},
        {"ws = []\ndef inner(): ws.append(6)\ndef outer(): inner()\nouter()\n"
         "def m(b, h, q, k): return (q - k).abs() < ws[0]\n",
         "m", within(6)},
        {"ws = []\ndef fill(to):\n    to.append(5)\nfill(ws)\ndef m(b, h, q, k): return (q - k).abs() < ws[0]\n", "m",
         within(5)},
        {"def note(x): print(x)\nids = torch.arange(24) // 5\nnote(ids)\n"
         "def m(b, h, q, k): return ids[q] == ids[k]\n",
         "m", [](int, int, int q, int k) { return q / 5 == k / 5; }},
    };
    for (const FileCase& item : cases) {
        SCOPED_TRACE(item.text);
        expectMaskOf(item.text, item.expression, item.expected);
    }
}

TEST(LanguagePython, StringsContainersAndIterators) {
    const FileCase cases[] = {
        {"def make(spec):\n    opts = {}\n    for part in spec.split(','):\n        name, _, value = "
         "part.strip().partition(':')\n        opts[name.lower()] = int(value)\n    w = opts.pop('near')\n" +
             kWindow,
         "make('Near:4, far:9')", within(4)},
        {"def make(name):\n    kind, _, n = name.replace('-', '_').rpartition('_')\n    assert kind == 'a_b' and "
         "n.isdigit() and name.endswith('3')\n    w = int(n)\n" +
             kWindow,
         "make('a-b_3')", within(3)},
        {"d = {'w': 1}\nd.update({'w': 3}, z=2)\nd |= {'w': d['w'] + d.setdefault('z', 9)}\nw = {**d}['w']\n"
         "def m(b, h, q, k): return (q - k).abs() < w\n",
         "m", within(5)},
        {"from itertools import chain, product, repeat, combinations\n"
         "import operator\nfrom operator import ge, sub\n"
         "ids = torch.tensor(list(chain.from_iterable(repeat(i, n) for i, n in enumerate([9, 15]))))\n"
         "n = len(list(product(range(2), repeat=2))) + len(combinations([1, 2, 3], 2))\n"
         "def m(b, h, q, k): return operator.and_(ge(q, k), sub(q, k) < n) | (ids[q] != ids[k])\n",
         "m", [](int, int, int q, int k) { return (q >= k && q - k < 7) || (q < 9) != (k < 9); }},
        {"pairs = {(3, 'a'), (1, 'b'), (1, 'a')}\nw = sorted(pairs, reverse=True)[0][0] + (1 if (1, 2) < (1, 3) else "
         "9)\n"
         "xs = [1, 2, 2]\nxs.remove(1)\nw += xs.count(2)\ndef m(b, h, q, k): return (q - k).abs() < w\n",
         "m", within(6)},
        {"import math\ndef make(n):\n    w = 3 if math.log2(n).is_integer() else 5\n    w += (7).bit_length()\n" +
             kWindow,
         "make(8)", within(6)},
    };
    for (const FileCase& item : cases) {
        SCOPED_TRACE(item.text);
        expectMaskOf(item.text, item.expression, item.expected);
    }
}

TEST(LanguagePython, TablesOfConstantTensors) {
    const FileCase cases[] = {
        {"s = torch.zeros(24, dtype=torch.long).scatter_(0, torch.tensor([5, 9]), 1).cumsum(0)\n"
         "def m(b, h, q, k): return s[q] == s[k]\n",
         "m",
         [](int, int, int q, int k) {
             const auto part = [](int i) { return (i >= 5 ? 1 : 0) + (i >= 9 ? 1 : 0); };
             return part(q) == part(k);
         }},
        {"c = torch.zeros(4).scatter_add(0, torch.tensor([1, 1, 3]), torch.ones(3))\n"
         "def m(b, h, q, k): return c[k % 4] == q % 3\n",
         "m",
         [](int, int, int q, int k) {
             const std::array<int, 4> counts = {0, 2, 0, 1};
             return counts.at(static_cast<std::size_t>(k % 4)) == q % 3;
         }},
        {"t = torch.arange(24).reshape(4, 6).gather(1, torch.tensor([[5], [0], [1], [2]])).flatten()\n"
         "def m(b, h, q, k): return (t == k).any() | (q == k)\n",
         "m", [](int, int, int q, int k) { return k == 5 || k == 6 || k == 13 || k == 20 || q == k; }},
        {"a = torch.zeros(24, 24, dtype=torch.bool)\nr, c = torch.tril_indices(24, 24)\na[r, c] = True\n"
         "def m(b, h, q, k): return a[q, k]\n",
         "m", [](int, int, int q, int k) { return k <= q; }},
        {"a = torch.block_diag(torch.ones(9, 9), torch.ones(15, 15)).bool()\ndef m(b, h, q, k): return a[q, k]\n", "m",
         [](int, int, int q, int k) { return (q < 9) == (k < 9); }},
        {"v = torch.arange(24) * 7 % 24\ntop = torch.topk(v, 3).indices\nleast = v.sort(descending=True).values[2]\n"
         "keep = torch.zeros(24, dtype=torch.bool).index_fill_(0, top, True)\n"
         "def m(b, h, q, k): return keep[k] & (v[k] >= least)\n",
         "m", [](int, int, int, int k) { return k * 7 % 24 > 20; }},
        {"n = torch.ones(24)\nn.mul_(2).add_(1)\nn[5:].sub_(1)\ndef m(b, h, q, k): return n[q] > 2.5\n", "m",
         [](int, int, int q, int) { return q < 5; }},
        {"near = torch.stack([torch.arange(24).roll(i) for i in (1, -1)], 1)\nids = torch.arange(24) // 4\n"
         "def m(b, h, q, k): return (ids[near[q]] == ids[k]).all()\n",
         "m", [](int, int, int q, int k) { return (q + 23) % 24 / 4 == k / 4 && (q + 1) % 24 / 4 == k / 4; }},
        {"p = torch.stack((torch.arange(24) // 6, torch.arange(24) % 6), 1)\n"
         "def m(b, h, q, k):\n    y, x = p[k].unbind(-1)\n    d = (p[q] - p[k]).float()\n"
         "    return (torch.norm(d) <= 2) & (d @ d < 4) & (torch.hypot(y - p[q, 0], x - p[q, 1]) < 1.5)\n",
         "m",
         [](int, int, int q, int k) {
             const int y = q / 6 - k / 6;
             const int x = q % 6 - k % 6;
             return y * y + x * x <= 2;
         }},
    };
    for (const FileCase& item : cases) {
        SCOPED_TRACE(item.text);
        expectMaskOf(item.text, item.expression, item.expected);
    }
}

TEST(LanguagePython, NarrowIntegersWrapAsPyTorchs) {
    const auto u8 = [](int i) { return static_cast<std::uint8_t>(i * 37); };
    const auto i8 = [](int i) { return static_cast<std::int8_t>(i * 11); };
    const auto i16 = [](int i) { return static_cast<std::int16_t>(i * 3000); };
    const std::string head = "u = (torch.arange(24) * 37 % 256).to(torch.uint8)\n"
                             "s = (torch.arange(24) * 11).to(torch.int8)\n"
                             "w = (torch.arange(24) * 3000).to(torch.int16)\ndef m(b, h, q, k): return ";
    const FileCase cases[] = {
        {"u[q] - u[k] < 100", "",
         [=](int, int, int q, int k) { return static_cast<std::uint8_t>(u8(q) - u8(k)) < 100; }},
        {"s[q] + s[k] > 0", "", [=](int, int, int q, int k) { return static_cast<std::int8_t>(i8(q) + i8(k)) > 0; }},
        {"s[q] * 3 > 20", "", [=](int, int, int q, int) { return static_cast<std::int8_t>(i8(q) * 3) > 20; }},
        {"w[q] * w[k] > 0", "", [=](int, int, int q, int k) { return static_cast<std::int16_t>(i16(q) * i16(k)) > 0; }},
        {"u[q] + s[k] > 100", "", [=](int, int, int q, int k) { return u8(q) + i8(k) > 100; }},
        {"~u[q] > u[k]", "", [=](int, int, int q, int k) { return 255 - u8(q) > u8(k); }},
        {"u[q] - k > 0", "", [=](int, int, int q, int k) { return u8(q) - k > 0; }},
        {"u[q].int() - u[k] > 0", "", [=](int, int, int q, int k) { return u8(q) > u8(k); }},
        {"(q * 50).to(torch.uint8) > 99", "", [=](int, int, int q, int) { return q * 50 % 256 > 99; }},
        {"(u[q] == u).sum() + u[k].sum() > 100", "", [=](int, int, int, int k) { return 1 + u8(k) > 100; }},
        {"torch.stack([u[q], u[k]]).amax() + 1 > 100", "",
         [=](int, int, int q, int k) { return static_cast<std::uint8_t>(std::max(u8(q), u8(k)) + 1) > 100; }},
    };
    for (const FileCase& item : cases) {
        SCOPED_TRACE(item.text);
        expectMaskOf(head + item.text + "\n", "m", item.expected);
    }
}

TEST(LanguagePython, MoreFunctionsOfScores) {
    struct Case {
        std::string expression;
        std::function<double(double)> expected;
    };
    const auto clamp = [](double x, double low, double high) { return std::min(std::max(x, low), high); };
    const Case cases[] = {
        {"torch.atan(s) + torch.asin(s / 3) - torch.acos(s / 4)",
         [](double s) { return std::atan(s) + std::asin(s / 3) - std::acos(s / 4); }},
        {"torch.atan2(s, s * s - 1)", [](double s) { return std::atan2(s, s * s - 1); }},
        {"torch.asinh(s) + torch.atanh(s / 3) + torch.acosh(1 + s * s) + torch.tan(s)",
         [](double s) { return std::asinh(s) + std::atanh(s / 3) + std::acosh(1 + s * s) + std::tan(s); }},
        {"s * (math.atan2(1, 2) + math.hypot(3, 4) + math.radians(90) + math.asin(0.5) + math.cosh(1))",
         [](double s) { return s * (std::atan2(1, 2) + 5 + std::acos(0.0) + std::asin(0.5) + std::cosh(1)); }},
        {"torch.logaddexp(s, 2 * s) + torch.erfc(s) + torch.logit(torch.sigmoid(s), eps=1e-6)",
         [](double s) { return std::log(std::exp(s) + std::exp(2 * s)) + std::erfc(s) + s; }},
        {"torch.addcmul(s, s, s, value=0.5) + torch.xlogy(s.abs(), s.abs()) + torch.addcdiv(s, s, s + 9)",
         [](double s) {
             return s + 0.5 * s * s + (s == 0 ? 0 : std::fabs(s) * std::log(std::fabs(s))) + s + s / (s + 9);
         }},
        {"torch.sinc(s) + torch.isfinite(s / 0).float() + torch.isclose(s, s + 1e-9) * 2",
         [](double s) { return (s == 0 ? 1 : std::sin(M_PI * s) / (M_PI * s)) + 2; }},
        {"torch.where(torch.isneginf(torch.where(s > 0, -math.inf, s)), 1.0, s)",
         [](double s) { return s > 0 ? 1 : s; }},
        {"torch.softmax(torch.stack([s, 2 * s]), 0)[1] + torch.log_softmax(torch.stack([s, s]), 0)[0]",
         [](double s) { return 1 / (1 + std::exp(-s)) - std::log(2.0); }},
        {"torch.sinh(s) + torch.cosh(s)", [](double s) { return std::sinh(s) + std::cosh(s); }},
        {"F.hardtanh(s) + F.relu6(s * 9)", [=](double s) { return clamp(s, -1, 1) + clamp(s * 9, 0, 6); }},
        {"F.hardsigmoid(s) + F.hardswish(s)",
         [=](double s) { return clamp(s / 6 + 0.5, 0, 1) + s * clamp(s / 6 + 0.5, 0, 1); }},
        {"F.mish(s) + F.softsign(s)",
         [](double s) { return s * std::tanh(std::log1p(std::exp(s))) + s / (1 + std::fabs(s)); }},
        {"F.softplus(s, beta=2)", [](double s) { return std::log1p(std::exp(2 * s)) / 2; }},
        {"F.celu(s, 2.0) + F.elu(s)",
         [](double s) { return (s > 0 ? s : 2 * std::expm1(s / 2)) + (s > 0 ? s : std::expm1(s)); }},
        {"F.selu(s)", [](double s) { return 1.0507009873554805 * (s > 0 ? s : 1.6732632423543772 * std::expm1(s)); }},
        {"F.hardshrink(s) + F.softshrink(s)",
         [](double s) { return std::fabs(s) > 0.5 ? 2 * s - std::copysign(0.5, s) : 0; }},
        {"F.threshold(s, 0.1, -2.0)", [](double s) { return s > 0.1 ? s : -2; }},
        {"torch.nan_to_num(torch.where(s > 1, float('nan'), s), nan=-5.0)", [](double s) { return s > 1 ? -5 : s; }},
        {"torch.copysign(s, q * 0 - 1) + torch.heaviside(s, s + 3)",
         [](double s) {
             return -std::fabs(s) + (s < 0 ? 0 : s > 0 ? 1 : 3);
         }},
        {"torch.where(s < torch.finfo(torch.float32).min, 1.0, s)", [](double s) { return s; }},
        {"s + torch.logspace(0, 2, 3)[1]", [](double s) { return s + 10; }},
        {"s * torch.einsum('d,d->', v[0], v[1])", [](double s) { return s * 18; }},
    };
    const std::string head =
        "import math\nimport torch.nn.functional as F\nv = torch.arange(6.0).reshape(3, 2) + torch.tensor([1.0, 2.0])\n"
        "def m(s, b, h, q, k): return ";
    for (const Case& item : cases) {
        SCOPED_TRACE(item.expression);
        expectScoreOf(head + item.expression + "\n", "m",
                      [&](double s, int, int, int, int) { return item.expected(s); });
    }
}

} // namespace
} // namespace vitrine::engine
