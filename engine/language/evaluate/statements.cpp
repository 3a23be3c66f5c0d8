// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "engine/language/evaluate/evaluator.h"
#include "engine/language/evaluate/names.h"
#include "engine/language/evaluate/scope.h"
#include "engine/language/python/lexer.h"

namespace vitrine::engine {

namespace {

bool isMutable(ModValue value) {
    return value.as<ModTensor>() != nullptr || value.as<ModSequence>() != nullptr || value.as<ModDict>() != nullptr ||
           value.as<ModInstance>() != nullptr;
}

} // namespace

void ModEvaluator::runModule(const ModText& text, std::span<const PyStmt* const> statements, ModScope& scope) {
    const Inside inside(*this, &text, &scope);
    for (const PyStmt* const statement : statements) {
        try {
            execute(*statement);
        } catch (const ModError& error) {
            // Somebody may never read these names; who does gets this error.
            ModPoison* const poisoned = poison(error);
            const ModNames names = statementNames(*statement);
            for (const std::string_view name : names.binds) {
                scope.names[name] = poisoned;
            }
            for (const std::string_view name : names.changes) {
                const auto found = scope.names.find(name);
                if (found != scope.names.end() && isMutable(found->second)) {
                    found->second = poisoned;
                }
            }
        }
    }
}

ModEvaluator::Flow ModEvaluator::execute(const PyBlock& block) {
    for (const std::unique_ptr<PyStmt>& statement : block) {
        const Flow flow = execute(*statement);
        if (flow != Flow::Next) {
            return flow;
        }
    }
    return Flow::Next;
}

ModEvaluator::Flow ModEvaluator::execute(const PyStmt& statement) {
    const Depth depth(*this);
    range_ = statement.range;
    try {
        step();
        return executePlaced(statement);
    } catch (const ModError&) {
        throw;
    } catch (const base::BadInput& error) {
        throw located(error, statement.range);
    }
}

ModEvaluator::Flow ModEvaluator::executePlaced(const PyStmt& statement) {
    switch (statement.kind) {
    case PyStmtKind::Expression: {
        const PyExprKind kind = statement.exprs[0]->kind;
        if (kind != PyExprKind::String && kind != PyExprKind::Ellipsis) {
            evaluate(*statement.exprs[0]);
        }
        return Flow::Next;
    }
    case PyStmtKind::Assign: {
        const ModValue value = evaluate(*statement.exprs.back());
        for (std::size_t i = 0; i + 1 < statement.exprs.size(); ++i) {
            assign(*statement.exprs[i], value);
        }
        return Flow::Next;
    }
    case PyStmtKind::AugmentedAssign:
        executeAugmented(statement);
        return Flow::Next;
    case PyStmtKind::AnnotatedAssign:
        if (statement.exprs[2]) {
            assign(*statement.exprs[0], evaluate(*statement.exprs[2]));
        }
        return Flow::Next;
    case PyStmtKind::Return:
        returned_ = statement.exprs.empty() ? ModValue() : evaluate(*statement.exprs[0]);
        return Flow::Return;
    case PyStmtKind::If:
        return executeIf(statement);
    case PyStmtKind::For:
        return executeFor(statement);
    case PyStmtKind::While:
        return executeWhile(statement);
    case PyStmtKind::Def:
        executeDef(statement);
        return Flow::Next;
    case PyStmtKind::Class:
        executeClass(statement);
        return Flow::Next;
    case PyStmtKind::Import:
        executeImport(statement);
        return Flow::Next;
    case PyStmtKind::ImportFrom:
        executeImportFrom(statement);
        return Flow::Next;
    case PyStmtKind::Pass:
    case PyStmtKind::TypeAlias:
        return Flow::Next;
    case PyStmtKind::Break:
        return Flow::Break;
    case PyStmtKind::Continue:
        return Flow::Continue;
    case PyStmtKind::Raise:
        raised(statement);
    case PyStmtKind::Assert:
        asserted(statement);
        return Flow::Next;
    case PyStmtKind::Delete:
        if (statement.exprs[0]->kind == PyExprKind::Name) {
            scope_->names.erase(statement.exprs[0]->name);
        }
        return Flow::Next;
    case PyStmtKind::Global:
    case PyStmtKind::Nonlocal:
        executeElsewhere(statement);
        return Flow::Next;
    case PyStmtKind::With:
        return executeWith(statement);
    case PyStmtKind::Try:
        return executeTry(statement);
    case PyStmtKind::Match:
        return executeMatch(statement);
    }
    return Flow::Next;
}

// global and nonlocal: these names belong to another scope.
void ModEvaluator::executeElsewhere(const PyStmt& statement) {
    for (const PyAlias& alias : statement.aliases) {
        ModScope* target = scope_->parent;
        while (target != nullptr && target->parent != nullptr &&
               (statement.kind == PyStmtKind::Global || target->names.count(alias.name) == 0)) {
            target = target->parent;
        }
        if (target != nullptr) {
            scope_->elsewhere[alias.name] = target;
        }
    }
}

ModEvaluator::Flow ModEvaluator::executeIf(const PyStmt& statement) {
    for (std::size_t i = 0; i < statement.exprs.size(); ++i) {
        const ModValue test = evaluate(*statement.exprs[i]);
        bool taken = false;
        try {
            taken = truth(test);
        } catch (const base::BadInput& error) {
            throw located(error, statement.exprs[i]->range);
        }
        if (taken) {
            return execute(statement.blocks[i]);
        }
    }
    const bool hasElse = statement.blocks.size() > statement.exprs.size();
    return hasElse ? execute(statement.blocks.back()) : Flow::Next;
}

std::optional<ModEvaluator::Flow> ModEvaluator::runBody(const PyStmt& loop) {
    const Flow flow = execute(loop.blocks[0]);
    if (flow == Flow::Return) {
        return flow;
    }
    return flow == Flow::Break ? std::optional(Flow::Next) : std::nullopt;
}

ModEvaluator::Flow ModEvaluator::executeFor(const PyStmt& statement) {
    for (const ModValue item : iterate(evaluate(*statement.exprs[1]))) {
        step();
        assign(*statement.exprs[0], item);
        if (const std::optional<Flow> left = runBody(statement)) {
            return *left;
        }
    }
    return statement.blocks.size() > 1 ? execute(statement.blocks[1]) : Flow::Next;
}

ModEvaluator::Flow ModEvaluator::executeWhile(const PyStmt& statement) {
    while (truth(evaluate(*statement.exprs[0]))) {
        step();
        if (const std::optional<Flow> left = runBody(statement)) {
            return *left;
        }
    }
    return statement.blocks.size() > 1 ? execute(statement.blocks[1]) : Flow::Next;
}

// What cannot be evaluated counts as an exception that the first handler takes.
ModEvaluator::Flow ModEvaluator::executeTry(const PyStmt& statement) {
    const std::size_t handlers = statement.handlers;
    Flow flow = Flow::Next;
    bool failed = false;
    tries_ += handlers > 0 ? 1 : 0;
    try {
        flow = execute(statement.blocks[0]);
        tries_ -= handlers > 0 ? 1 : 0;
    } catch (const ModError& error) {
        tries_ -= handlers > 0 ? 1 : 0;
        if (handlers == 0 || steps_ > kMaxModSteps) {
            throw;
        }
        failed = true;
        note(fmt::format("'try' failed and its first handler ran: {}", error.description()));
    }
    if (failed) {
        flow = execute(statement.blocks[1]);
    } else if (statement.hasElse && flow == Flow::Next) {
        flow = execute(statement.blocks[1 + handlers]);
    }
    if (statement.hasFinally) {
        const Flow last = execute(statement.blocks.back());
        flow = last == Flow::Next ? flow : last;
    }
    return flow;
}

ModEvaluator::Flow ModEvaluator::executeWith(const PyStmt& statement) {
    int withoutGradient = 0;
    for (std::size_t i = 0; i < statement.exprs.size(); i += 2) {
        const ModValue context = evaluate(*statement.exprs[i]);
        const auto* const ignored = context.as<ModIgnored>();
        withoutGradient += ignored != nullptr && ignored->what == "torch.no_grad" ? 1 : 0;
        if (statement.exprs[i + 1]) {
            assign(*statement.exprs[i + 1], context);
        }
    }
    noGradient_ += withoutGradient;
    try {
        const Flow flow = execute(statement.blocks[0]);
        noGradient_ -= withoutGradient;
        return flow;
    } catch (...) {
        noGradient_ -= withoutGradient;
        throw;
    }
}

void ModEvaluator::raised(const PyStmt& statement) {
    std::string what = "the text raises an error here";
    if (!statement.exprs.empty() && statement.exprs[0]->kind == PyExprKind::Call) {
        const PyExpr& exception = *statement.exprs[0];
        what = fmt::format("{}", std::string_view(text_->file.text)
                                     .substr(exception.items[0]->range.begin,
                                             exception.items[0]->range.end - exception.items[0]->range.begin));
        if (exception.items.size() > 1) {
            what += ": " + modText(evaluate(*exception.items[1]));
        }
    }
    fail(what);
}

void ModEvaluator::asserted(const PyStmt& statement) {
    const ModValue test = evaluate(*statement.exprs[0]);
    if (test.isSymbol() && !builder_.real(test.node())) {
        note("an assertion about values that are known only for each element is not checked");
        return;
    }
    if (!truth(test)) {
        fail(statement.exprs.size() > 1 ? "assertion failed: " + modText(evaluate(*statement.exprs[1]))
                                        : "assertion failed");
    }
}

void ModEvaluator::executeAugmented(const PyStmt& statement) {
    const PyExpr& target = *statement.exprs[0];
    const ModValue before = evaluate(target);
    const ModValue value = evaluate(*statement.exprs[1]);
    place(target);
    auto* const tensor = before.as<ModTensor>();
    auto* const list = before.as<ModSequence>();
    if (list != nullptr && list->kind == ModKind::List && statement.op == PyOperator::Add) {
        const std::vector<ModValue> more = iterate(value);
        heap_.charge(static_cast<std::int64_t>(more.size()));
        list->items.insert(list->items.end(), more.begin(), more.end());
        return;
    }
    const ModValue after = operate(statement.op, before, value);
    const auto* const result = after.as<ModTensor>();
    if (tensor != nullptr && result != nullptr && tensor->storage && (!inProgram_ || tensor->literal)) {
        assignTensor(*tensor, {result, {}}); // in place: other views see it
        if (target.kind != PyExprKind::Subscript) {
            return;
        }
    }
    assign(target, after);
}

void ModEvaluator::assign(const PyExpr& target, ModValue value) {
    switch (target.kind) {
    case PyExprKind::Name:
        bind(target.name, value, *scope_);
        return;
    case PyExprKind::Tuple:
    case PyExprKind::List:
        unpack(target, value);
        return;
    case PyExprKind::Subscript: {
        const ModValue object = evaluate(*target.items[0]);
        if (target.items.size() < 2) {
            fail("an empty subscript cannot be assigned to");
        }
        assignItem(object, evaluate(*target.items[1]), value);
        return;
    }
    case PyExprKind::Attribute: {
        const ModValue object = evaluate(*target.items[0]);
        if (auto* const instance = object.as<ModInstance>()) {
            if (auto* const tensor = value.as<ModTensor>(); tensor != nullptr && tensor->name.empty()) {
                tensor->name = std::string(target.name);
            }
            instance->attributes[std::string(target.name)] = value;
        } else if (auto* const type = object.as<ModClass>()) {
            type->scope->names[target.name] = value;
        }
        // Names of functions and settings of modules mean nothing to programs.
        return;
    }
    default:
        fail("this cannot be assigned to");
    }
}

void ModEvaluator::unpack(const PyExpr& target, ModValue value) {
    const std::vector<ModValue> items = iterate(value);
    const std::size_t count = target.items.size();
    std::size_t star = count;
    for (std::size_t i = 0; i < count; ++i) {
        star = target.items[i]->kind == PyExprKind::Starred ? i : star;
    }
    if (star == count ? items.size() != count : items.size() + 1 < count) {
        fail(fmt::format("{} values for {} names", items.size(), count));
    }
    const std::size_t extra = star == count ? 0 : items.size() + 1 - count;
    for (std::size_t i = 0, from = 0; i < count; ++i) {
        if (i != star) {
            assign(*target.items[i], items[from++]);
            continue;
        }
        const auto begin = items.begin() + static_cast<std::ptrdiff_t>(from);
        assign(*target.items[i]->items[0], heap_.list({begin, begin + static_cast<std::ptrdiff_t>(extra)}));
        from += extra;
    }
}

ModFunction* ModEvaluator::makeFunction(const PyFunction& code) {
    auto* const made = heap_.make<ModFunction>();
    made->code = &code;
    made->text = text_;
    made->closure = scope_;
    for (const PyParameter& parameter : code.parameters) {
        made->defaults.push_back(parameter.value ? evaluate(*parameter.value) : ModValue());
    }
    return made;
}

// Compilers, caches and wrappers do not change what a function means.
ModValue ModEvaluator::decorate(ModValue value, const PyExpr& decorator) {
    const PyExpr& name = decorator.kind == PyExprKind::Call ? *decorator.items[0] : decorator;
    const std::string_view written =
        std::string_view(text_->file.text).substr(name.range.begin, name.range.end - name.range.begin);
    auto* const function = value.as<ModFunction>();
    if (function != nullptr && written == "staticmethod") {
        function->isStatic = true;
        return value;
    }
    if (function != nullptr && (written == "classmethod" || written == "property")) {
        (written == "property" ? function->isProperty : function->isClassMethod) = true;
        return value;
    }
    const std::string_view last =
        written.substr(written.rfind('.') == std::string_view::npos ? 0 : written.rfind('.') + 1);
    static constexpr std::array<std::string_view, 18> kTransparent = {
        "lru_cache", "cache",       "wraps",          "compile",  "no_grad", "inference_mode",
        "disable",   "custom_op",   "allow_in_graph", "script",   "jit",     "register_fake",
        "skipif",    "parametrize", "overload",       "override", "final",   "dataclass"};
    if (std::find(kTransparent.begin(), kTransparent.end(), last) != kTransparent.end()) {
        if (auto* const type = value.as<ModClass>()) {
            type->isData = type->isData || last == "dataclass";
        }
        return value;
    }
    const ModValue wrapper = evaluate(decorator);
    if (wrapper.as<ModIgnored>() != nullptr) {
        return value;
    }
    return call(wrapper, {value});
}

void ModEvaluator::executeDef(const PyStmt& statement) {
    const PyFunction& code = *statement.function;
    ModValue made = makeFunction(code);
    for (std::size_t i = code.decorators.size(); i-- > 0;) {
        made = decorate(made, *code.decorators[i]);
    }
    bind(code.name, made, *scope_);
}

void ModEvaluator::executeImport(const PyStmt& statement) {
    for (const PyAlias& alias : statement.aliases) {
        auto* const made = heap_.make<ModModuleObject>();
        made->path = std::string(alias.asName.empty() ? alias.name.substr(0, alias.name.find('.')) : alias.name);
        const std::string_view name = alias.asName.empty() ? alias.name.substr(0, alias.name.find('.')) : alias.asName;
        scope_->names[name] = made;
    }
}

void ModEvaluator::executeImportFrom(const PyStmt& statement) {
    for (const PyAlias& alias : statement.aliases) {
        if (alias.name == "*") {
            continue; // names of torch and of the catalogue are known anyway
        }
        const std::string_view name = alias.asName.empty() ? alias.name : alias.asName;
        try {
            scope_->names[name] = imported(statement.name, alias.name);
        } catch (const base::BadInput& error) {
            if (tries_ > 0) {
                throw; // as ImportError: the text says what to do without it
            }
            const auto* const known = dynamic_cast<const ModError*>(&error);
            scope_->names[name] = poison(known != nullptr ? *known : located(error, alias.range));
        }
    }
}

ModValue ModEvaluator::imported(std::string_view module, std::string_view name) {
    // A definition of the same name in one of the given files is what the import means.
    for (ModScope* scope = scope_; scope != nullptr; scope = scope->parent) {
        const auto found = scope->names.find(name);
        if (found != scope->names.end() && found->second.as<ModPoison>() == nullptr) {
            return found->second;
        }
    }
    auto* const source = heap_.make<ModModuleObject>();
    source->path = std::string(module);
    if (const auto found = findAttribute(source, name)) {
        return *found;
    }
    if (fallback_) {
        if (const auto found = fallback_(name)) {
            return *found;
        }
    }
    fail(fmt::format(
        "'{}' of module '{}' is not known{}; give the file that defines it too, or bind a tensor of that name", name,
        module, suggestion(name, knownNames_ ? knownNames_() : std::vector<std::string_view>{})));
}

} // namespace vitrine::engine
