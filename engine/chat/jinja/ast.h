// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The tree of a template. Nodes are owned by the template in one list and point at each other, so that a deep tree
// needs no deep recursion to be freed.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace vitrine::engine::jinja {

/// Line and column of the template's text, from 1.
struct Place {
    int line = 1;
    int column = 1;
};

enum class ExprKind : std::uint8_t {
    Name,
    True,
    False,
    None,
    Integer,
    Real,
    String,
    List,
    Tuple,
    Dict,      ///< items: key, value, key, value...
    Attribute, ///< left.text
    Item,      ///< left[right]
    Slice,     ///< items: start, stop, step; null: not given
    Call,      ///< left(items, keywords)
    Filter,    ///< left | text(items, keywords); left null: of a block
    Test,      ///< left is text(items, keywords)
    Condition, ///< left if right else items[0]
    And,
    Or,
    Not,
    Negative,
    Positive,
    Arithmetic, ///< left text right: + - * / // % **
    Concat,     ///< items joined by ~
    Compare,    ///< left, then (operators[i], items[i]) in a chain
};

struct Expr {
    ExprKind kind = ExprKind::None;
    Place place;
    std::string text;
    std::int64_t integer = 0;
    double real = 0;
    Expr* left = nullptr;
    Expr* right = nullptr;
    std::vector<Expr*> items;
    std::vector<std::pair<std::string, Expr*>> keywords;
    std::vector<std::string> operators;
    Expr* moreItems = nullptr;    ///< *expression of a call
    Expr* moreKeywords = nullptr; ///< **expression of a call
};

enum class StmtKind : std::uint8_t {
    Data,        ///< text
    Output,      ///< value
    If,          ///< branches; otherwise
    For,         ///< target in value if condition: body; otherwise
    Set,         ///< target = value
    SetBlock,    ///< target = body through the filters of value
    Macro,       ///< text(parameters): body
    CallBlock,   ///< value with the macro `caller`: parameters, body
    FilterBlock, ///< body through the filters of value
    With,        ///< bindings: body
    Generation,  ///< body is what the assistant says
    Block,       ///< body
    Break,
    Continue,
};

struct Stmt;
struct Branch {
    Expr* condition = nullptr;
    std::vector<Stmt*> body;
};
struct Parameter {
    std::string name;
    Expr* standard = nullptr; ///< null: none
};

struct Stmt {
    StmtKind kind = StmtKind::Data;
    Place place;
    std::string text;
    Expr* target = nullptr;
    Expr* value = nullptr;
    Expr* condition = nullptr;
    bool recursive = false;
    std::vector<Stmt*> body, otherwise;
    std::vector<Branch> branches;
    std::vector<Parameter> parameters;
    std::vector<std::pair<Expr*, Expr*>> bindings;
    bool usesVarargs = false, usesKwargs = false, usesCaller = false; ///< of a macro: names that its body reads
};

/// A parsed template. Immutable; safe to use from several threads.
struct Tree {
    std::vector<std::unique_ptr<Expr>> expressions;
    std::vector<std::unique_ptr<Stmt>> statements;
    std::vector<Stmt*> body;
    bool hasGeneration = false;
};

} // namespace vitrine::engine::jinja
