// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <fmt/format.h>

#include "engine/chat/jinja/lexer.h"
#include "engine/chat/jinja/python_text.h"
#include "engine/chat/jinja/template_run.h"

namespace vitrine::engine::jinja {

namespace {

constexpr std::uint64_t kMostSteps = 20'000'000;
constexpr int kDeepestRun = 900;
constexpr std::size_t kMostOutput = std::size_t{64} << 20;

} // namespace

TemplateRun::Depth::Depth(TemplateRun& run) : run_(run) {
    if (++run.depth_ > kDeepestRun) {
        --run.depth_;
        run.fail("calls and expressions are nested too deep");
    }
}

TemplateRun::TemplateRun(const Tree& tree, Heap& heap, const std::tm& now) : tree_(tree), heap_(heap), now_(now) {
    globals_ = heap.make<Scope>();
    addGlobals(*this, *globals_);
}

void TemplateRun::fail(std::string_view what) const {
    failAt(place_, what);
}

void TemplateRun::step(std::size_t count) {
    steps_ += count;
    if (steps_ > kMostSteps) {
        fail("the template runs for too long");
    }
}

Text TemplateRun::render(const std::vector<std::pair<std::string, Value>>& variables) {
    auto* scope = heap_.make<Scope>();
    scope->parent = globals_;
    for (const auto& [name, value] : variables) {
        scope->set(name, value);
    }
    Text out;
    try {
        runBody(tree_.body, *scope, out);
    } catch (const TemplateRefusal&) {
        throw;
    } catch (const base::BadInput& error) {
        // What knows no place: the heap and the printers.
        if (error.message().starts_with("line ")) {
            throw;
        }
        fail(error.message());
    }
    return out;
}

void TemplateRun::append(Text& out, const Text& text) {
    printed_ += text.size();
    if (printed_ > kMostOutput) {
        fail("the template prints too much");
    }
    out.append(text);
}

TemplateRun::Flow TemplateRun::runBody(const std::vector<Stmt*>& body, Scope& scope, Text& out) {
    for (const Stmt* statement : body) {
        const Flow flow = run(*statement, scope, out);
        if (flow != Flow::Next) {
            return flow;
        }
    }
    return Flow::Next;
}

/// What a body prints, in a scope of its own.
Text TemplateRun::inner(const std::vector<Stmt*>& body, Scope& scope) {
    auto* own = heap_.make<Scope>();
    own->parent = &scope;
    Text out;
    runBody(body, *own, out);
    return out;
}

TemplateRun::Flow TemplateRun::run(const Stmt& statement, Scope& scope, Text& out) {
    const Depth depth(*this);
    place_ = statement.place;
    step();
    const auto filtered = [&](const Text& text) {
        // The innermost filter of the chain takes the text, which stands in the scope under a name that none can have.
        auto* own = heap_.make<Scope>();
        own->parent = &scope;
        own->set(" block", heap_.string(text));
        return evaluate(*statement.value, *own);
    };
    switch (statement.kind) {
    case StmtKind::Data:
        append(out, Text(statement.text));
        return Flow::Next;
    case StmtKind::Output:
        append(out, printed(evaluate(*statement.value, scope)));
        return Flow::Next;
    case StmtKind::If:
        return runIf(statement, scope, out);
    case StmtKind::For:
        runFor(statement, scope, evaluate(*statement.value, scope), 0, out);
        return Flow::Next;
    case StmtKind::Set:
        assign(*statement.target, evaluate(*statement.value, scope), scope);
        return Flow::Next;
    case StmtKind::SetBlock: {
        const Text text = inner(statement.body, scope);
        assign(*statement.target, statement.value != nullptr ? filtered(text) : heap_.string(text), scope);
        return Flow::Next;
    }
    case StmtKind::Macro:
        scope.set(statement.text, macro(statement, scope));
        return Flow::Next;
    case StmtKind::CallBlock:
        runCallBlock(statement, scope, out);
        return Flow::Next;
    case StmtKind::FilterBlock:
        append(out, printed(filtered(inner(statement.body, scope))));
        return Flow::Next;
    case StmtKind::With:
        runWith(statement, scope, out);
        return Flow::Next;
    case StmtKind::Generation: {
        Text text = inner(statement.body, scope);
        text.markGenerated();
        append(out, text);
        return Flow::Next;
    }
    case StmtKind::Block:
        append(out, inner(statement.body, scope));
        return Flow::Next;
    case StmtKind::Break:
        return Flow::Break;
    case StmtKind::Continue:
        return Flow::Continue;
    }
    return Flow::Next;
}

TemplateRun::Flow TemplateRun::runIf(const Stmt& statement, Scope& scope, Text& out) {
    for (const Branch& branch : statement.branches) {
        if (isTrue(evaluate(*branch.condition, scope))) {
            return runBody(branch.body, scope, out);
        }
    }
    return runBody(statement.otherwise, scope, out);
}

void TemplateRun::runFor(const Stmt& statement, Scope& scope, const Value& over, std::int64_t depth, Text& out) {
    std::vector<Value> items = iterate(over);
    if (statement.condition != nullptr) {
        std::vector<Value> kept;
        for (const Value& item : items) {
            auto* own = heap_.make<Scope>();
            own->parent = &scope;
            assign(*statement.target, item, *own);
            if (isTrue(evaluate(*statement.condition, *own))) {
                kept.push_back(item);
            }
        }
        items = std::move(kept);
    }
    if (items.empty()) {
        runBody(statement.otherwise, scope, out);
        return;
    }
    auto* loop = heap_.make<LoopState>();
    // The heap keeps the items: a template may keep the loop.
    loop->items = &heap_.list(std::move(items)).sequence().items;
    loop->depth = depth;
    loop->statement = statement.recursive ? &statement : nullptr;
    loop->outer = &scope;
    for (loop->index = 0; loop->index < loop->items->size(); ++loop->index) {
        step();
        auto* own = heap_.make<Scope>();
        own->parent = &scope;
        own->set("loop", Value(Kind::Loop, loop));
        assign(*statement.target, (*loop->items)[loop->index], *own);
        if (runBody(statement.body, *own, out) == Flow::Break) {
            break;
        }
    }
}

Value TemplateRun::callLoop(const Value& value, Call& call) {
    const LoopState& loop = value.loop();
    if (loop.statement == nullptr) {
        fail("loop can be called in a loop with \"recursive\" only");
    }
    Text out;
    runFor(*loop.statement, *loop.outer, need(call, 0, "iterable"), loop.depth + 1, out);
    return heap_.string(std::move(out));
}

void TemplateRun::runWith(const Stmt& statement, Scope& scope, Text& out) {
    auto* own = heap_.make<Scope>();
    own->parent = &scope;
    for (const auto& [target, value] : statement.bindings) {
        assign(*target, evaluate(*value, scope), *own);
    }
    runBody(statement.body, *own, out);
}

void TemplateRun::runCallBlock(const Stmt& statement, Scope& scope, Text& out) {
    const Expr& expr = *statement.value;
    const Value callee = evaluate(*expr.left, scope);
    Call made = arguments(expr, scope);
    made.keywords.emplace_back("caller", macro(statement, scope));
    append(out, printed(call(callee, made)));
}

void TemplateRun::assign(const Expr& target, const Value& value, Scope& scope) {
    if (target.kind == ExprKind::Name) {
        scope.set(target.text, value);
        return;
    }
    if (target.kind == ExprKind::Attribute) {
        const Value object = evaluate(*target.left, scope);
        if (!object.is(Kind::Namespace)) {
            fail("only members of a namespace can be set");
        }
        if (target.text.starts_with('_')) {
            fail("names that begin with an underscore cannot be set");
        }
        object.dict().set(heap_.string(target.text), value);
        return;
    }
    const std::vector<Value> items = iterate(value);
    if (items.size() != target.items.size()) {
        fail(fmt::format("{} values cannot be given to {} names", items.size(), target.items.size()));
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
        assign(*target.items[i], items[i], scope);
    }
}

Value TemplateRun::macro(const Stmt& statement, Scope& scope) {
    auto* out = heap_.make<Callable>();
    out->name = statement.text;
    out->macro = &statement;
    out->closure = &scope;
    return {Kind::Callable, out};
}

Value TemplateRun::callMacro(const Callable& callee, Call& call) {
    const Stmt& code = *callee.macro;
    auto* scope = heap_.make<Scope>();
    scope->parent = callee.closure;
    for (std::size_t i = 0; i < code.parameters.size(); ++i) {
        const Parameter& parameter = code.parameters[i];
        std::optional<Value> value = call.optional(i, parameter.name);
        if (!value) {
            value =
                parameter.standard != nullptr ? evaluate(*parameter.standard, *scope) : heap_.undefined(parameter.name);
        }
        scope->set(parameter.name, *value);
    }
    const std::size_t known = std::min(code.parameters.size(), call.items.size());
    if (code.usesVarargs) {
        scope->set("varargs", heap_.list({call.items.begin() + static_cast<std::ptrdiff_t>(known), call.items.end()},
                                         Kind::Tuple));
    } else if (call.items.size() > known) {
        fail(fmt::format("the macro {} takes no more than {} arguments", callee.name, known));
    }
    const Value rest = heap_.dict();
    for (const auto& [name, value] : call.keywords) {
        if (name == "caller" && code.usesCaller) {
            scope->set("caller", value);
        } else {
            rest.dict().set(heap_.string(name), value);
        }
    }
    if (code.usesKwargs) {
        scope->set("kwargs", rest);
    } else if (!rest.dict().entries.empty()) {
        fail(fmt::format("the macro {} takes no argument {}", callee.name, rest.dict().entries.front().first.bytes()));
    }
    Text out;
    runBody(code.body, *scope, out);
    return heap_.string(std::move(out));
}

Value TemplateRun::call(const Value& callee, Call& call) {
    const Depth depth(*this);
    step();
    if (callee.is(Kind::Loop)) {
        return callLoop(callee, call);
    }
    if (callee.is(Kind::Undefined)) {
        fail(fmt::format("{} is undefined", callee.undefinedName()));
    }
    if (!callee.is(Kind::Callable)) {
        fail(fmt::format("a value of type {} cannot be called", typeName(callee)));
    }
    const Callable& function = callee.callable();
    if (function.macro != nullptr) {
        return callMacro(function, call);
    }
    call.self = function.self;
    Value out = function.builtin(*this, call);
    finish(call, function.name);
    return out;
}

} // namespace vitrine::engine::jinja
