// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/python/parser.h"

#include <gtest/gtest.h>

#include "engine/language/python/lexer.h"
#include "engine/language/python/tokens.h"

namespace vitrine::engine {
namespace {

PyTree parsed(const std::string& text) {
    static PyFile file;
    file = {"test.py", text};
    return parsePython(file);
}

TEST(PyParser, TakesTheGrammarOfPython) {
    const std::string texts[] = {
        "",
        "\xEF\xBB\xBFx = 1\n",
        "x = 1; y = 2;\n",
        "x = y = (1, 2, *z)\n",
        "a, *b = c, d = 1, 2\n",
        "x: int = 3\ny: [B]\nQ, K: Tensor[2]\n",
        "x += 1; x //= 2; x **= 3; x >>= 1; x @= y; x |= y\n",
        "def f(a, /, b: int = 2, *args, c, d=4, **kw) -> int:\n    return a\n",
        "def f(*, a): pass\n",
        "def f[T: int](x: T) -> T:\n  return x\n",
        ("async def f():\n    async with a as b, c:\n        await d\n    async for x in y: pass\n"
         "    return [i async for i in z]\n"),
        "@dec\n@mod.dec(1, x=2)\nclass A(B, metaclass=C):\n    '''doc'''\n    x: int\n    def f(self): return self.x\n",
        "class Empty: ...\n",
        "type Alias[T] = list[T]\ntype = 3\nmatch = 4\nmatch(x)\nprint(match[0])\n",
        "match x:\n    case {'a': [1, *_]} if y: pass\n    case Point(x=0) | None:\n        z = 1\n    case _: pass\n",
        ("try:\n    import a\nexcept (A, B) as e:\n    raise C from e\nexcept* D:\n    pass\n"
         "else:\n    x\nfinally:\n    y\n"),
        "with (open(a) as b, open(c)):\n    pass\nwith (a, b): pass\nwith (a).b as c.d: pass\n",
        "from . import a\nfrom ..b.c import (d as e, f,)\nfrom g import *\nimport a.b.c as d, e\n",
        "for i, (a, b) in enumerate(x):\n    continue\nelse:\n    pass\nwhile (n := f()) > 1: break\n",
        "x = [i for i in range(3) if i if not i]\ny = {k: v for k, v in z}\nw = {*a, 1}\nd = {**a, 'b': 1}\n",
        "f(x for x in y)\nf(*a, b, c=d, **e)\nf(y := 1)\n",
        "x = lambda a, *b, c=1, **d: a if b else lambda: None\n",
        "x = a if b else c if d else e\nx = not a and b or not c\nx = 1 < 2 <= 3 != 4 is not None\nx = a not in b\n",
        "x = -a ** -b ** c\nx = ~a << 2 | b & c ^ d\nx = a @ b // c % d\n",
        "x = a[1:2, ::3, ..., None, *b]\nx = a[:]\nx = a.b(c)[d].e\n",
        "x = 0xFF_FF + 0b10 + 0o17 + 1_000 + 1e-3 + .5 + 5. + 1j + 99999999999999999999999\n",
        "x = 'a' \"b\" '''c\nd''' r'\\n' b'x' u'y' '\\x41\\u00e9\\N{DASH}\\\n'\n",
        "x = f'{a}{b!r:>{w}} {{}} {c[\"d\"]:.2f} {x = }' rf'{y}\\d'\n",
        "x = f\"{f'{f\"{a}\"}'}\"\n",
        "x = (1 +\n     2) # comment\n\n\n# end\n",
        "x = 1 + \\\n    2\n",
        "if a:\n\tx\n\tif b:\n\t\ty\nelif c: z\nelse:\n    w\n",
        "global a\nnonlocal_ = 1\ndel a, b[0]\nassert a, 'b'\nreturn_ = 2\n",
        "def f():\n    x = yield\n    yield from y\n    yield 1, 2\n",
        "\xC3\xA9t\xC3\xA9 = 1\n",
        "x = 1if y else 2\n",
    };
    for (const std::string& text : texts) {
        EXPECT_NO_THROW(parsed(text)) << text;
    }
}

TEST(PyParser, BindsOperatorsAsPythonDoes) {
    const PyFile file{"e", "a | b & c == -d ** 2 // e"};
    const PyExprPtr expr = parsePythonExpression(file);
    ASSERT_EQ(expr->kind, PyExprKind::Compare);
    EXPECT_EQ(expr->items[0]->op, PyOperator::Or);
    EXPECT_EQ(expr->items[0]->items[1]->op, PyOperator::And);
    ASSERT_EQ(expr->items[1]->op, PyOperator::FloorDiv);
    EXPECT_EQ(expr->items[1]->items[0]->op, PyOperator::Minus);
    EXPECT_EQ(expr->items[1]->items[0]->items[0]->op, PyOperator::Pow);
    EXPECT_EQ(expr->range.end, file.text.size());
}

TEST(PyParser, TakesWhatArticlesWrite) {
    const PyTree tree = parsed("def score_mod(score: f32[], b: i32[], h, q, kv)\n"
                               "    return score\n"
                               "m = create_block_mask(f, B=B, H=None, S, S)\n");
    EXPECT_EQ(tree.body.size(), 2U);
    EXPECT_EQ(tree.leniencies.size(), 5U);
    EXPECT_NE(tree.leniencies[0].find("test.py:1:"), std::string::npos);
}

TEST(PyParser, ErrorsHavePlacesAndCarets) {
    struct Case {
        std::string text;
        int line, column;
        std::string says;
    };
    const Case cases[] = {
        {"x = (1,\n", 1, 5, "never closed"},
        {"x = 1)\n", 1, 6, "closes no bracket"},
        {"x = (1]\n", 1, 7, "closes no bracket"},
        {"x =\n", 1, 4, "expected an expression, found the end of the line"},
        {"x = 'abc\n", 1, 5, "does not end"},
        {"x = f'{a'\n", 1, 5, "does not end"},
        {"if x:\ny = 1\n", 2, 1, "indented block"},
        {"if x\n    y = 1\n", 1, 5, "expected ':'"},
        {"  x = 1\n", 1, 1, "indented without a block"},
        {"if x:\n    y\n  z\n", 3, 1, "matches no block"},
        {"x = 1 2\n", 1, 7, "expected the end of the statement"},
        {"1 = x\n", 1, 1, "cannot be assigned to"},
        {"f(a=1, a=2)\n", 1, 8, "given twice"},
        {"def f(a, a): pass\n", 1, 10, "two parameters"},
        {"x = $\n", 1, 5, "does not use"},
        {"x = 12ab\n", 1, 5, "not a number"},
        {"try:\n    x\ny\n", 3, 1, "'except' or 'finally'"},
        {"class: pass\n", 1, 6, "the class's name"},
        {"\xC3\xA9 = $\n", 1, 5, "does not use"},
        {"import\n", 1, 7, "a module's name"},
    };
    for (const Case& item : cases) {
        try {
            parsed(item.text);
            ADD_FAILURE() << item.text;
        } catch (const PyError& error) {
            EXPECT_EQ(error.place().line, item.line) << item.text << error.what();
            EXPECT_EQ(error.place().column, item.column) << item.text << error.what();
            EXPECT_NE(error.description().find(item.says), std::string::npos) << error.what();
            EXPECT_NE(error.excerpt().find('^'), std::string::npos);
        }
    }
    try {
        parsed("x = 1\ny = a +* b\n");
    } catch (const PyError& error) {
        EXPECT_EQ(error.excerpt(), "y = a +* b\n       ^");
        EXPECT_EQ(error.message(), "test.py:2:8: expected an expression, found '*'");
    }
}

TEST(PyParser, IsBounded) {
    const auto refused = [](const std::string& text) { EXPECT_THROW(parsed(text), PyError) << text.substr(0, 40); };
    refused(std::string(10000, '('));
    refused("x = " + std::string(10000, '(') + "1" + std::string(10000, ')') + "\n");
    refused("x = " + std::string(10000, '-') + "1\n");
    std::string text = "x = ";
    for (int i = 0; i < 10000; ++i) {
        text += "not ";
    }
    refused(text + "1\n");
    text = "x = 1";
    for (int i = 0; i < 100000; ++i) {
        text += "+1";
    }
    refused(text + "\n");
    text = "x = a";
    for (int i = 0; i < 10000; ++i) {
        text += ".b";
    }
    refused(text + "\n");
    text.clear();
    for (int i = 0; i < 1000; ++i) {
        text += std::string(static_cast<std::size_t>(i), ' ') + "if x:\n";
    }
    refused(text);
    refused(std::string(kMaxSourceBytes, ','));
    refused(std::string(kMaxSourceBytes + 1, '#'));
    text = "x = ";
    for (int i = 0; i < 10000; ++i) {
        text += "lambda:";
    }
    refused(text + "1\n");
    EXPECT_NO_THROW(
        parsed("x = [" + std::string(200000, '0') + "]\n")); // one huge integer, an error only when it is used
    text = "x = [";
    for (int i = 0; i < 200000; ++i) {
        text += "0,";
    }
    EXPECT_NO_THROW(parsed(text + "]\n"));
}

TEST(CodeTokens, ColourTextThatIsNotCorrect) {
    const std::string text = "def f(x): # why\n    return torch.abs(x) + 1.5 $ 'open";
    const std::vector<CodeToken> tokens = codeTokens(text);
    const auto kindOf = [&](const std::string& piece) {
        for (const CodeToken& token : tokens) {
            if (text.substr(token.begin, token.end - token.begin) == piece) {
                return token.kind;
            }
        }
        ADD_FAILURE() << piece;
        return CodeToken::Kind::Error;
    };
    EXPECT_EQ(kindOf("def"), CodeToken::Kind::Keyword);
    EXPECT_EQ(kindOf("f"), CodeToken::Kind::Name);
    EXPECT_EQ(kindOf("torch"), CodeToken::Kind::Builtin);
    EXPECT_EQ(kindOf("1.5"), CodeToken::Kind::Number);
    EXPECT_EQ(kindOf("# why"), CodeToken::Kind::Comment);
    EXPECT_EQ(kindOf("$"), CodeToken::Kind::Error);
    EXPECT_EQ(kindOf("'open"), CodeToken::Kind::Error);
    EXPECT_EQ(kindOf("+"), CodeToken::Kind::Operator);
}

} // namespace
} // namespace vitrine::engine
