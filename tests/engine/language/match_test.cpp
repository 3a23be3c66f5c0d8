// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// "match" over constants, members of enums and objects of modules.
#include "tests/engine/language/language_testing.h"

namespace vitrine::engine {
namespace {

/// A factory whose `w` is chosen by the cases of "match x".
std::string factory(const std::string& cases) {
    return "class K:\n    A = 'a'\n    B = 7\ndef make(x):\n    w = 1\n    match x:\n" + cases +
           "    return lambda b, h, q, k: (q - k).abs() < w\n";
}

TEST(LanguageMatch, PatternsChooseTheFirstCaseThatFits) {
    const std::string cases = "        case 'causal' | 'full':\n            w = 2\n"
                              "        case K.A:\n            w = 3\n"
                              "        case -3 | 2.5:\n            w = 4\n"
                              "        case None | True:\n            w = 5\n"
                              "        case int() if False:\n            w = 99\n"
                              "        case (1, n):\n            w = n\n"
                              "        case [_, *rest] if len(rest) > 2:\n            w = sum(rest)\n"
                              "        case (2 | 3) as head, (left, right), *_:\n            w = head + left * right\n"
                              "        case K.B as seen if seen > 6:\n            w = seen\n"
                              "        case []:\n            w = 11\n"
                              "        case other:\n            w = 12\n";
    const std::string withoutClass =
        factory(cases.substr(0, cases.find("        case int()")) + cases.substr(cases.find("        case (1, n)")));
    const std::pair<std::string, int> expected[] = {
        {"'full'", 2}, {"'a'", 3},     {"-3", 4},           {"2.5", 4},         {"None", 5},           {"True", 5},
        {"(1, 8)", 8}, {"[1, 9]", 9},  {"(0, 1, 2, 3)", 6}, {"(3, (2, 2))", 7}, {"[2, [1, 3], 4]", 5}, {"7", 7},
        {"()", 11},    {"'none'", 12}, {"{1: 2}", 12},      {"(4, 5)", 12},
    };
    for (const auto& [value, distance] : expected) {
        SCOPED_TRACE(value);
        expectMaskOf(withoutClass, "make(" + value + ")", within(distance));
    }
    try {
        makeMod(factory(cases), "make(7)", true);
        ADD_FAILURE() << "a pattern of a class was taken";
    } catch (const PyError& error) {
        EXPECT_EQ(error.place().line, 15);
        EXPECT_EQ(error.place().column, 14);
        EXPECT_NE(std::string(error.what()).find("patterns of classes and dicts are not supported"), std::string::npos)
            << error.what();
    }
}

TEST(LanguageMatch, NothingFitsAndFilesBindNames) {
    expectMaskOf(factory("        case 5:\n            w = 2\n"), "make(6)", within(1));
    expectMaskOf(
        "MODE = 'global'\nmatch MODE:\n    case 'local':\n        W = 2\n    case name:\n        W = len(name)\n"
        "def m(b, h, q, k): return (q - k).abs() < W\n",
        "m", within(6));
    // A value that differs from element to element chooses nothing.
    EXPECT_THROW(
        makeMod("def m(b, h, q, k):\n    match q:\n        case 0: return k == 0\n        case _: return q > k\n", "m",
                true),
        PyError);
}

TEST(LanguageMatch, EnumsNumberThemselves) {
    expectMaskOf("from enum import IntEnum, auto\nclass T(IntEnum):\n    A = auto()\n    B = 5\n    C = auto()\n"
                 "t = torch.tensor([T.A, T.B, T.C.value])\ndef m(b, h, q, k): return (q - k).abs() < t[q % 3]\n",
                 "m", [](int, int, int q, int k) {
                     return std::abs(q - k) < (q % 3 == 0 ? 1 : q % 3 == 1 ? 5 : 6);
                 });
}

TEST(LanguageMatch, ModulesRegisterTensors) {
    expectMaskOf("from torch import nn\nclass A(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
                 "        self.register_buffer('ids', torch.arange(24) // 5, persistent=False)\n"
                 "class B(A):\n    def m(self, b, h, q, k): return self.ids[q] == self.ids[k]\n",
                 "B().eval().m", [](int, int, int q, int k) { return q / 5 == k / 5; });
}

TEST(LanguageMatch, FieldsOfDataclassesHaveDefaults) {
    expectMaskOf("from dataclasses import dataclass, field\n@dataclass\nclass C:\n    w: int\n"
                 "    more: list = field(default_factory=lambda: [1, 2])\n    less: int = field(default=1)\n"
                 "    def m(self, b, h, q, k): return (q - k).abs() < self.w + self.more[1] - self.less\n"
                 "c = C(3)\nc.more.append(5)\n",
                 "C(3).m", within(4));
}

TEST(LanguageMatch, OperatorsOfClassesAreCalled) {
    const std::string classes =
        "class Mask:\n    def __and__(self, other): return Both(self, other)\n"
        "    def __invert__(self): return lambda *a: ~self(*a)\n"
        "    def __rsub__(self, n): return Near(n - self.n)\n"
        "    def __len__(self): return self.n\n    def __getitem__(self, i): return self.n + i\n"
        "    def __contains__(self, i): return i < self.n\n"
        "    def __eq__(self, other): return self.n == other.n\n"
        "class Near(Mask):\n    def __init__(self, n): self.n = n\n"
        "    def __call__(self, b, h, q, k): return (q - k).abs() < self.n\n"
        "class Both(Mask):\n    def __init__(self, a, b): self.a, self.b = a, b\n"
        "    def __call__(self, *x): return self.a(*x) & self.b(*x)\n";
    expectMaskOf(classes, "Near(4) & Near(9)", within(4));
    expectMaskOf(classes, "~Near(4)", [](int, int, int q, int k) { return std::abs(q - k) >= 4; });
    expectMaskOf(classes, "9 - Near(4)", within(5));
    expectMaskOf(classes + "n = Near(3)\nassert Near(3) == n and 2 in n and 3 not in n\nw = Near(len(n) + n[2])\n", "w",
                 within(8));
    EXPECT_THROW(makeMod(classes, "Near(4) | Near(9)", true), PyError);
    // Each call of itself nests.
    EXPECT_THROW(makeMod("class A:\n    def __add__(self, o): return self + o\n", "A() + 1", true), PyError);
}

TEST(LanguageMatch, TextsAreFormatted) {
    const std::string text = "table = {'w_4': 4, 'a 7%': 7, '{x}': 9}\n" +
                             std::string("def make(key):\n    w = table[key]\n") +
                             "    return lambda b, h, q, k: (q - k).abs() < w\n";
    expectMaskOf(text, "make('w_%d' % 4)", within(4));
    expectMaskOf(text, "make('%s %02d%%' % ('a', 7))", within(7));
    expectMaskOf(text, "make('{}_{n}'.format('w', n=4))", within(4));
    expectMaskOf(text, "make('{1:s} {0}%'.format(7, 'a'))", within(7));
    expectMaskOf(text, "make('{{x}}'.format())", within(9));
    for (const char* expression : {"make('%d %d' % 4)", "make('%' % 4)", "make('{'.format())", "make('{2}'.format(1))",
                                   "make('{name}'.format(1))"}) {
        EXPECT_THROW(makeMod(text, expression, true), PyError) << expression;
    }
}

TEST(LanguageMatch, WhatIsNotInstalledIsNotImported) {
    expectMaskOf("try:\n    from flash_attn import kernels\n    W = 9\nexcept ImportError:\n    W = 3\n"
                 "def m(b, h, q, k): return (q - k).abs() < W\n",
                 "m", within(3));
    expectMaskOf("class N: pass\nn = N()\nsetattr(n, 'w', 4)\ndef m(b, h, q, k): return (q - k).abs() < n.w\n", "m",
                 within(4));
    expectMaskOf("assert {'a', 'b'} == {'b', 'a'} and {'a'} != {'b'}\nW = int(' w07'.lstrip().removeprefix('w'))\n"
                 "def m(b, h, q, k): return (q - k).abs() < W\n",
                 "m", within(7));
}

} // namespace
} // namespace vitrine::engine
