// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/jinja/parser.h"

#include <algorithm>
#include <fmt/format.h>
#include <initializer_list>
#include <string>
#include <utility>

#include "engine/chat/jinja/expression_parser.h"

namespace vitrine::engine::jinja {

namespace {

/// Statements; expressions are read by the class below it.
class StatementParser : private ExpressionParser {
public:
    StatementParser(std::vector<Token> tokens, Tree& tree) : ExpressionParser(std::move(tokens), tree) {}

    void run() {
        tree().body = parseUntil({});
        if (!peek(TokenKind::End)) {
            failAt(current().place, "the template goes on where it should end");
        }
    }

private:
    using Body = std::vector<Stmt*>;

    Stmt* make(StmtKind kind, Place place) {
        tree().statements.push_back(std::make_unique<Stmt>());
        Stmt* out = tree().statements.back().get();
        out->kind = kind;
        out->place = place;
        return out;
    }

    static bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
        return std::find(names.begin(), names.end(), name) != names.end();
    }

    /// Statements up to a tag that begins with one of `ends`, whose name is the current token then.
    Body parseUntil(std::initializer_list<std::string_view> ends) {
        const Nesting nesting(*this);
        Body body;
        while (!peek(TokenKind::End)) {
            const Token& token = current();
            if (token.kind == TokenKind::Data) {
                Stmt* data = make(StmtKind::Data, token.place);
                data->text = next().text;
                body.push_back(data);
            } else if (token.kind == TokenKind::VariableBegin) {
                Stmt* output = make(StmtKind::Output, next().place);
                output->value = parseTuple();
                expect(TokenKind::VariableEnd, "}}");
                body.push_back(output);
            } else {
                expect(TokenKind::BlockBegin, "{%");
                if (isOneOf(current().text, ends) && peek(TokenKind::Name)) {
                    return body;
                }
                body.push_back(parseStatement());
            }
        }
        if (ends.size() > 0) {
            failAt(current().place, fmt::format("the template ends, but {} is missing", *(ends.end() - 1)));
        }
        return body;
    }

    void endTag() { expect(TokenKind::BlockEnd, "%}"); }
    /// "NAME %}", behind a body.
    void closeTag(std::string_view name) {
        expectName(name);
        endTag();
    }

    Stmt* parseStatement() {
        const Token name = next();
        if (name.kind != TokenKind::Name) {
            failAt(name.place, "a tag must begin with a name");
        }
        if (name.text == "if") {
            return parseIf(name.place);
        }
        if (name.text == "for") {
            return parseFor(name.place);
        }
        if (name.text == "set") {
            return parseSet(name.place);
        }
        if (name.text == "macro") {
            return parseMacro(name.place);
        }
        if (name.text == "call") {
            return parseCallBlock(name.place);
        }
        if (name.text == "with") {
            return parseWith(name.place);
        }
        if (name.text == "break" || name.text == "continue") {
            endTag();
            return make(name.text == "break" ? StmtKind::Break : StmtKind::Continue, name.place);
        }
        return parseSimpleBlock(name);
    }

    Stmt* parseSimpleBlock(const Token& name) {
        if (name.text == "filter") {
            Stmt* out = make(StmtKind::FilterBlock, name.place);
            out->value = parseFilters(nullptr, true);
            endTag();
            out->body = parseUntil({"endfilter"});
            closeTag("endfilter");
            return out;
        }
        if (name.text == "generation") {
            Stmt* out = make(StmtKind::Generation, name.place);
            tree().hasGeneration = true;
            endTag();
            out->body = parseUntil({"endgeneration"});
            closeTag("endgeneration");
            return out;
        }
        if (name.text == "block") {
            Stmt* out = make(StmtKind::Block, name.place);
            out->text = expect(TokenKind::Name, "a name").text;
            endTag();
            out->body = parseUntil({"endblock"});
            expectName("endblock");
            if (peek(TokenKind::Name)) {
                next();
            }
            endTag();
            return out;
        }
        if (isOneOf(name.text, {"include", "import", "from", "extends"})) {
            failAt(name.place, fmt::format("{} needs a second template, and a chat template has none", name.text));
        }
        failAt(name.place, fmt::format("the tag {} is not known", name.text.substr(0, 40)));
    }

    Stmt* parseIf(Place place) {
        Stmt* out = make(StmtKind::If, place);
        while (true) {
            Branch branch;
            branch.condition = parseTuple(false);
            endTag();
            branch.body = parseUntil({"elif", "else", "endif"});
            out->branches.push_back(std::move(branch));
            const Token& end = next();
            if (end.text == "elif") {
                continue;
            }
            endTag();
            if (end.text == "else") {
                out->otherwise = parseUntil({"endif"});
                closeTag("endif");
            }
            return out;
        }
    }

    Stmt* parseFor(Place place) {
        Stmt* out = make(StmtKind::For, place);
        out->target = parseTarget(false);
        expectName("in");
        out->value = parseTuple(false);
        if (skipName("if")) {
            out->condition = parseExpression();
        }
        out->recursive = skipName("recursive");
        endTag();
        out->body = parseUntil({"else", "endfor"});
        const bool hasElse = next().text == "else";
        endTag();
        if (hasElse) {
            out->otherwise = parseUntil({"endfor"});
            closeTag("endfor");
        }
        return out;
    }

    Stmt* parseSet(Place place) {
        Stmt* out = make(StmtKind::Set, place);
        out->target = parseTarget(true);
        if (skipOperator("=")) {
            out->value = parseTuple();
            endTag();
            return out;
        }
        out->kind = StmtKind::SetBlock;
        out->value = parseFilters(nullptr, false);
        endTag();
        out->body = parseUntil({"endset"});
        closeTag("endset");
        return out;
    }

    /// "(a, b=1)"
    void parseParameters(Stmt& macro) {
        expectOperator("(");
        while (!skipOperator(")")) {
            if (!macro.parameters.empty()) {
                expectOperator(",");
                if (skipOperator(")")) {
                    return;
                }
            }
            Parameter parameter{expect(TokenKind::Name, "the name of a parameter").text, nullptr};
            if (skipOperator("=")) {
                parameter.standard = parseExpression();
            } else if (!macro.parameters.empty() && macro.parameters.back().standard != nullptr) {
                failAt(current().place, "a parameter without a default follows one that has a default");
            }
            macro.parameters.push_back(std::move(parameter));
        }
    }

    /// The body of a macro, and which of the names varargs, kwargs and caller it reads.
    void parseMacroBody(Stmt& macro, std::string_view end) {
        const std::size_t begin = tree().expressions.size();
        macro.body = parseUntil({end});
        for (std::size_t i = begin; i < tree().expressions.size(); ++i) {
            const Expr& each = *tree().expressions[i];
            if (each.kind == ExprKind::Name) {
                macro.usesVarargs = macro.usesVarargs || each.text == "varargs";
                macro.usesKwargs = macro.usesKwargs || each.text == "kwargs";
                macro.usesCaller = macro.usesCaller || each.text == "caller";
            }
        }
        closeTag(end);
    }

    Stmt* parseMacro(Place place) {
        Stmt* out = make(StmtKind::Macro, place);
        out->text = expect(TokenKind::Name, "the name of the macro").text;
        parseParameters(*out);
        endTag();
        parseMacroBody(*out, "endmacro");
        return out;
    }

    Stmt* parseCallBlock(Place place) {
        Stmt* out = make(StmtKind::CallBlock, place);
        out->text = "caller";
        if (peekOperator("(")) {
            parseParameters(*out);
        }
        out->value = parseExpression();
        if (out->value->kind != ExprKind::Call) {
            failAt(place, "call needs the call of a macro");
        }
        endTag();
        parseMacroBody(*out, "endcall");
        return out;
    }

    Stmt* parseWith(Place place) {
        Stmt* out = make(StmtKind::With, place);
        while (!peek(TokenKind::BlockEnd)) {
            if (!out->bindings.empty()) {
                expectOperator(",");
            }
            Expr* target = parseTarget(false);
            expectOperator("=");
            out->bindings.emplace_back(target, parseExpression());
        }
        endTag();
        out->body = parseUntil({"endwith"});
        closeTag("endwith");
        return out;
    }
};

} // namespace

std::shared_ptr<const Tree> parseTemplate(std::string_view source) {
    auto tree = std::make_shared<Tree>();
    StatementParser(tokenize(source), *tree).run();
    return tree;
}

} // namespace vitrine::engine::jinja
