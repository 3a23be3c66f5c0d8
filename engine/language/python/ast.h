// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Syntax trees of Python 3.12. Names and texts are views into the file's text, which outlives its tree. What no program
// can reach (await, patterns of classes, ...) is kept coarsely: its place, so that an error can point at it.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::engine {

/// Bytes of the file's text.
struct PyRange {
    std::uint32_t begin = 0, end = 0;
};

enum class PyOperator : std::uint8_t {
    None,
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    MatMul,
    And, ///< &
    Or,  ///< |
    Xor,
    ShiftLeft,
    ShiftRight,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    Is,
    IsNot,
    In,
    NotIn,
    Plus,
    Minus,
    Invert,
};

enum class PyExprKind : std::uint8_t {
    None,
    True,
    False,
    Ellipsis,
    Integer,
    HugeInteger, ///< does not fit into 64 bits
    Float,
    Imaginary,
    String,
    Bytes,
    FString, ///< items: String and Formatted parts
    Formatted,
    Name,
    Tuple,
    List,
    Set,
    Dict,      ///< items: key, value, key, value; a null key stands before a ** value
    Attribute, ///< items: object; name
    Subscript, ///< items: object, index (none for "f32[]", which articles write in annotations)
    Slice,     ///< items: start, stop, step; null where left out
    Call,      ///< items: callee, arguments; extra: their keywords
    Unary,
    Not,
    Binary,
    Compare, ///< items: operands; extra: operators
    And,
    Or,
    Conditional, ///< items: condition, value if true, value if false
    Lambda,
    ListComprehension,
    SetComprehension,
    DictComprehension, ///< items: key, value
    Generator,
    Starred,
    Walrus, ///< name; items: value
    Await,
    Yield,
};

struct PyExpr;
struct PyFunctionCode;
struct PyStmt;
using PyExprPtr = std::unique_ptr<PyExpr>;
using PyBlock = std::vector<std::unique_ptr<PyStmt>>;

/// "for target in iterable if condition if ..."
struct PyClause {
    PyExprPtr target, iterable;
    std::vector<PyExprPtr> conditions;
};

/// What few expressions need.
struct PyExprExtra {
    std::vector<PyOperator> operators;      ///< Compare
    std::vector<std::string_view> keywords; ///< Call: of each argument, "" for a positional one, "*", "**"
    std::vector<PyClause> clauses;          ///< comprehensions
    std::unique_ptr<PyFunctionCode> lambda;
    std::string text; ///< String: decoded; Formatted: what stands after ":"
};

struct PyExpr {
    PyExprKind kind = PyExprKind::None;
    PyOperator op = PyOperator::None;
    std::uint16_t depth = 1; ///< of the tree below, itself included
    PyRange range;
    union {
        std::int64_t integer = 0;
        double real;
    };
    std::string_view name;
    std::vector<PyExprPtr> items;
    std::unique_ptr<PyExprExtra> extra;
};

struct PyParameter {
    enum class Kind : std::uint8_t { PositionalOnly, Normal, VarPositional, KeywordOnly, VarKeyword };
    std::string_view name;
    Kind kind = Kind::Normal;
    PyExprPtr annotation, value; ///< null where left out
    PyRange range;
};

struct PyFunctionCode {
    std::string_view name; ///< "" for a lambda
    std::vector<PyParameter> parameters;
    std::vector<PyExprPtr> decorators;
    PyBlock body;     ///< of a def
    PyExprPtr result; ///< of a lambda
    bool isAsync = false;
    bool isGenerator = false; ///< contains yield
    PyRange range;            ///< of the whole text, decorators included
    PyRange head;             ///< "def name(...)"
};

enum class PyStmtKind : std::uint8_t {
    Expression,      ///< exprs: value
    Assign,          ///< exprs: targets, value last
    AugmentedAssign, ///< exprs: target, value; op
    AnnotatedAssign, ///< exprs: target, annotation, value or null
    Return,          ///< exprs: value or nothing
    If,              ///< exprs: tests; blocks: one for each, and the else block if there is one
    For,             ///< exprs: target, iterable; blocks: body, else
    While,           ///< exprs: test; blocks: body, else
    Def,
    Class,  ///< name; exprs: bases; blocks: body
    Import, ///< aliases
    ImportFrom,
    Pass,
    Break,
    Continue,
    Raise,  ///< exprs: exception or nothing
    Assert, ///< exprs: test, message or nothing
    Delete,
    Global,
    Nonlocal,
    With,  ///< exprs: context, target or null, context, ...; blocks: body
    Try,   ///< blocks: body, handlers, else, finally as `tryBlocks` says
    Match, ///< exprs: subject, then a guard or null for each of `patterns`; blocks: one for each
    TypeAlias,
};

struct PyAlias {
    std::string_view name;   ///< "torch.nn.functional", or of ImportFrom "causal_mask" or "*"
    std::string_view asName; ///< "" if it has none
    PyRange range;
};

struct PyPattern {
    enum class Kind : std::uint8_t {
        Value, ///< equal to `value`
        Is,    ///< None, True, False
        Capture,
        Named, ///< items: pattern; "as"
        Alternatives,
        Sequence,
        Star,        ///< in a Sequence: the rest
        Unsupported, ///< of classes and dicts
    };
    Kind kind = Kind::Value;
    PyRange range;
    std::string_view name; ///< Capture ("_" binds nothing), Named, Star
    PyExprPtr value;
    std::vector<PyPattern> items;
};

struct PyStmt {
    PyStmtKind kind = PyStmtKind::Pass;
    PyOperator op = PyOperator::None;
    std::uint16_t handlers = 0; ///< Try: how many except blocks follow the body
    bool hasElse = false;       ///< Try
    bool hasFinally = false;    ///< Try
    PyRange range;              ///< of a compound statement: its head
    std::string_view name;      ///< Class: its name; ImportFrom: the module, with its dots
    std::vector<PyExprPtr> exprs;
    std::vector<PyBlock> blocks;
    std::vector<PyPattern> patterns;
    std::vector<PyAlias> aliases; ///< imports; Global and Nonlocal: names; Try: names bound by handlers
    std::unique_ptr<PyFunctionCode> function;
    std::vector<PyExprPtr> decorators; ///< Class
};

/// One parsed file.
struct PyTree {
    PyBlock body;
    std::vector<std::string> leniencies; ///< what Python itself would not take, with places
};

} // namespace vitrine::engine
