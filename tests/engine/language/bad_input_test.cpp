// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <random>

#include "engine/language/catalogue.h"
#include "tests/engine/language/language_testing.h"
#include "tests/repetitions.h"

namespace vitrine::engine {
namespace {

TEST(LanguageErrors, SayWhereWhatAndWhatToDo) {
    struct Case {
        std::string text;
        std::string says;
        int line, column;
        std::string expression = "m";
    };
    const std::string head = "def m(b, h, q, k):\n    ";
    const Case cases[] = {
        {head + "if q > k:\n        return q > 1\n    return k > 1\n", "torch.where", 2, 8},
        {head + "while q > k:\n        q = q - 1\n    return q > k\n", "torch.where", 2, 5},
        {head + "return q.item() > 3\n", "leave .item() away", 2, 12},
        {head + "return document_id[q] == document_id[k]\n", "--tensors FILE", 2, 12},
        {head + "return q_ix >= k\n", "'q_ix' is not defined", 2, 12},
        {"window = 3\n" + head + "return q - k < windw\n", "did you mean 'window'?", 3, 20},
        {head + "return torch.tanhh(q) > 0\n", "did you mean 'tanh'?", 2, 12},
        {head + "return q.aps() > 0\n", "did you mean 'abs'?", 2, 12},
        {head + "return q - k\n", "returns a boolean", 1, 1},
        {head + "return q > (-5. & 0)\n", "not floats", 2, 17},
        {"t = torch.ones(4) | 1\n" + head + "return t[q] > 0\n", "not floats", 1, 5},
        {"t = 1.5 << 2\n" + head + "return q > t\n", "not floats", 1, 5},
        {"from itertools import product\nn = list(product([1], repeat=2 ** 62))\n" + head + "return q > n[0]\n",
         "64 lists", 2, 10},
        {"t = torch.zeros(4)\nt.scatter_(0, torch.tensor([9]), 1)\n" + head + "return t[q] > 0\n", "index 9", 2, 1},
        {head + "q.add_(1)\n    return q > k\n", "x = x.add(...)", 2, 5},
        {head + "return torch.ops.mylib.thing(q) > k\n", "custom operator", 2, 12},
        {head + "q > k\n", "returns nothing", 1, 1},
        {"def m(score, b, h, q, k):\n    return score\n", "looks like a score_mod", 1, 1},
        {"def m(window):\n    def inner(b, h, q, k):\n        return q - k < window\n    return inner\n", "factory", 1,
         1},
        {"m = 3\n", "this is an int", 1, 1},
        {"table = torch.randn(4)\n" + head + "return table[q] > 0\n", "safetensors", 1, 9},
        {"import random\nn = random.randint(0, 4)\n" + head + "return q > n\n", "safetensors", 2, 5},
        {"import numpy as np\nn = np.array([1])\n" + head + "return q > n[k]\n", "numpy", 2, 5},
        {"t = torch.arange(4)\n" + head + "return t[q, k] > 0\n", "2 indices", 3, 12},
        {"t = torch.arange(4)\n" + head + "return t[q * 1.0] > 0\n", "must be an integer", 3, 12},
        {"t = [1, 2, 3]\n" + head + "return t[h] > q\n", "torch.tensor", 3, 12},
        {head + "return (q > k) & (q - 0.5)\n", "booleans or integers", 2, 12},
        {head + "for i in range(q):\n        pass\n    return q > k\n", "must be known before", 2, 14},
        {"n = float.is_integer()\n" + head + "return q > n\n", "'self' is missing", 1, 5},
        {"n = int.bit_length()\n" + head + "return q > n\n", "'self' is missing", 1, 5},
        {"n = 5 // 0\n" + head + "return q > n\n", "division by zero", 1, 5},
        {"n = 9223372036854775807 + 1\n" + head + "return q > n\n", "64 bits", 1, 5},
        {"n = 99999999999999999999\n" + head + "return q > n\n", "64 bits", 1, 5},
        {"assert 1 > 2, 'no'\nn = missing(3)\n" + head + "return q > n\n", "'missing' is not defined", 2, 5},
        {head + "assert h.ndim == 1, 'rank'\n    return q > k\n", "assertion failed: rank", 2, 5},
        {"def factory(n):\n    raise ValueError(f'bad {n}')\n", "ValueError: bad 3", 2, 5, "factory(3)"},
        {"def m(b, h, q, k, extra):\n    return extra\n", "arguments", 1, 1},
        {"def factory(size):\n    return lambda b, h, q, k: q - k < size\n", "no argument 'sise'; did you mean 'size'?",
         1, 1, "factory(sise=3)"},
        {"def outer():\n    def hidden(b, h, q, k):\n        return q > k\n    return hidden\n", "inside a function", 1,
         1, "hidden"},
        {head + "return f'{q}'\n", "returns a string", 1, 1},
        {head + "return q.foo\n", "no attribute 'foo'", 2, 12},
        {"x = torch.zeros(3)[5]\n" + head + "return q > x\n", "index 5", 1, 5},
        {"x = torch.zeros(3) + torch.zeros(4)\n" + head + "return q > x[k]\n", "broadcast", 1, 5},
        {"x = torch.zeros(3).view(2, 2)\n" + head + "return q > x[k]\n", "does not fit", 1, 5},
        {"async def m(b, h, q, k):\n    return q > k\n", "async", 1, 1},
        {"def m(b, h, q, k):\n    yield q\n", "generator", 1, 1},
        {"from nowhere import thing\n" + head + "return thing(q, k)\n", "'thing' of module 'nowhere' is not known", 1,
         21},
        {"t = torch.zeros(4)\n" + head + "t[0] = 1\n    return t[k] > 0\n", "cannot change a captured tensor", 3, 5},
        {head + "return m(b, h, q, k)\n", "nested", 2, 12},
        {head + "return q > k > None\n", "None", 2, 12},
        {head + "return torch.arange(5000)[:] > q\n", "at most 1024", 2, 12},
    };
    for (const Case& item : cases) {
        try {
            makeMod(item.text, item.expression, true);
            ADD_FAILURE() << "no error:\n" << item.text;
        } catch (const PyError& error) {
            EXPECT_NE(error.description().find(item.says), std::string::npos) << item.text << error.what();
            EXPECT_EQ(error.place().line, item.line) << item.text << error.what();
            EXPECT_EQ(error.place().column, item.column) << item.text << error.what();
            EXPECT_EQ(std::count(error.excerpt().begin(), error.excerpt().end(), '\n'), 1) << error.excerpt();
            EXPECT_EQ(error.message().find('\n'), std::string::npos);
        }
    }
}

TEST(LanguageErrors, OnlyWhatIsReachedIsChecked) {
    const std::string text =
        "broken = undefined_function(3)\nimport triton\nx = triton.jit(4)\n"
        "data = torch.randn(1 << 40)\nhuge = 99999999999999999999 ** 99999999\nwhile True:\n    spin = 1\n"
        "def other(b, h, q, k):\n    return broken[q] > q.item()\n"
        "def m(b, h, q, k):\n    return q >= k\n";
    const ChosenProgram program = makeMod(text, "m", true);
    EXPECT_FALSE(program.notes.empty());
    EXPECT_THROW(makeMod(text, "other", true), PyError);
}

TEST(LanguageErrors, BoundsHold) {
    const auto refused = [](const std::string& text, const std::string& says) {
        try {
            makeMod(text + "\ndef m(b, h, q, k):\n    return q > n\n", "m", true);
            ADD_FAILURE() << "no error: " << text;
        } catch (const PyError& error) {
            EXPECT_NE(error.description().find(says), std::string::npos) << text << "\n" << error.what();
        }
    };
    refused("n = 0\nwhile True:\n    n += 1", "steps");
    refused("n = 0\nfor i in range(10 ** 12):\n    n += 1", "steps");
    refused("n = [0] * 10 ** 12", "elements");
    refused("n = torch.zeros(10 ** 12)", "elements");
    refused("n = torch.zeros(1 << 20, 1 << 20, 1 << 20)", "elements");
    refused("n = torch.arange(10 ** 15)", "elements");
    refused("n = torch.zeros(4096).expand(1 << 20, 4096).clone()", "elements");
    refused("x = [1]\nfor i in range(60):\n    x = x + x\nn = x", "elements");
    refused("x = 'a'\nfor i in range(60):\n    x = x + x\nn = x", "elements");
    refused("def f(x):\n    return f(x + 1)\nn = f(0)", "nested");
    refused("f = lambda x: f(x)\nn = f(0)", "nested");
    refused("n = 2 ** 1000000000000", "64 bits");
    refused("n = 1 << 100000", "64 bits");
    refused("n = torch.tensor([[1, 2], [3]])", "different");
    refused("x = []\nx.append(x)\nn = torch.tensor(x)", "nested");
    refused("n = sum(range(10 ** 9))", "steps");
    refused("n = torch.repeat_interleave(torch.arange(4), 10 ** 10)", "repetitions");
    refused("n = torch.arange(8).repeat(10 ** 9)", "repetitions");
    refused("n = float('x')", "no number");
    refused("n = int(float('nan')) if False else [][0]", "index 0 of 0");
    // As many nodes as a program may have, and one more.
    std::string chain =
        "def m(b, h, q, k):\n    x = q\n    for i in range(30000):\n        x = x * 3 + k\n    return x > 0\n";
    EXPECT_THROW(makeMod(chain, "m", true), PyError);
}

/// Mutated catalogue files: any result is fine but a crash, a hang or an error without a place.
TEST(LanguageErrors, SurviveMutatedPrograms) {
    std::mt19937 random(20261120);
    const std::vector<ModCatalogueEntry>& entries = modCatalogue();
    const std::string alphabet = "()[]{}:,.=+-*/%&|^~<>! \n\t'\"#0123456789abqk_";
    int made = 0;
    for (int round = 0; round < vitrine::test::repetitions(1500); ++round) {
        const ModCatalogueEntry& entry = entries[random() % entries.size()];
        PyFile file = entry.file;
        const int changes = 1 + static_cast<int>(random() % 4);
        for (int change = 0; change < changes && !file.text.empty(); ++change) {
            const std::size_t at = random() % file.text.size();
            switch (random() % 4) {
            case 0:
                file.text.erase(at, 1 + random() % 8);
                break;
            case 1:
                file.text.insert(at, 1, alphabet[random() % alphabet.size()]);
                break;
            case 2:
                file.text[at] = alphabet[random() % alphabet.size()];
                break;
            default:
                file.text.insert(at, file.text.substr(random() % file.text.size(), random() % 40));
                break;
            }
        }
        const std::string& example = entry.examples[random() % entry.examples.size()];
        for (const bool isMask : {true, false}) {
            try {
                const PyModule module = PyModule::parse(std::span(&file, 1));
                static_cast<void>(module.offers());
                const ChosenProgram program = isMask ? module.mask(example) : module.score(example);
                EXPECT_EQ(program.program.isMask(), isMask);
                ++made;
            } catch (const PyError& error) {
                EXPECT_GE(error.place().line, 1);
                EXPECT_FALSE(error.description().empty());
            }
        }
    }
    EXPECT_GT(made, vitrine::test::moreThan(100));
}

} // namespace
} // namespace vitrine::engine
