// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/module.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/language/builtins/builtins.h"
#include "engine/language/catalogue.h"
#include "engine/language/evaluate/interpreter.h"
#include "engine/language/offers.h"
#include "engine/language/python/lexer.h"
#include "engine/language/python/parser.h"
#include "engine/language/python/reached_statements.h"
#include "engine/language/python/statement_names.h"

namespace vitrine::engine {

namespace {

/// The catalogue parsed, and which of its files defines a name.
struct ParsedCatalogue {
    std::vector<std::unique_ptr<PyText>> texts;
    std::map<std::string_view, const PyText*> definers;
};

std::unique_ptr<PyText> parsedText(const PyFile& file) {
    auto made = std::make_unique<PyText>();
    made->file = file; // first: the tree keeps views of it
    made->tree = parsePython(made->file);
    return made;
}

const ParsedCatalogue& parsedCatalogue() {
    static const ParsedCatalogue kParsed = [] {
        ParsedCatalogue made;
        for (const ModCatalogueEntry& entry : modCatalogue()) {
            made.texts.push_back(parsedText(entry.file));
            for (const std::unique_ptr<PyStmt>& statement : made.texts.back()->tree.body) {
                for (const std::string_view name : statementNames(*statement).binds) {
                    made.definers.emplace(name, made.texts.back().get());
                }
            }
        }
        return made;
    }();
    return kParsed;
}

std::vector<const PyStmt*> statementsOf(const PyText& text) {
    std::vector<const PyStmt*> made;
    for (const std::unique_ptr<PyStmt>& statement : text.tree.body) {
        made.push_back(statement.get());
    }
    return made;
}

} // namespace

struct PyModule::State {
    std::vector<std::unique_ptr<PyText>> texts;

    ChosenProgram program(std::string_view expression, const ProgramOptions& options, bool isMask) const;
    /// All names that the texts and the catalogue define.
    std::vector<std::string_view> knownNames() const;
    /// Where a name is defined that the file's scope does not have: inside another function.
    std::string hiddenDefinition(std::string_view name) const;
};

PyModule::PyModule() : state_(std::make_unique<State>()) {}
PyModule::~PyModule() = default;
PyModule::PyModule(PyModule&&) noexcept = default;
PyModule& PyModule::operator=(PyModule&&) noexcept = default;

PyModule PyModule::parse(std::span<const PyFile> files) {
    PyModule made;
    for (const PyFile& file : files) {
        made.state_->texts.push_back(parsedText(file));
    }
    return made;
}

std::vector<ProgramOffer> PyModule::offers() const {
    std::vector<ProgramOffer> made;
    for (const std::unique_ptr<PyText>& text : state_->texts) {
        for (ProgramOffer& offer : offersOf(*text)) {
            // A later definition of the same name wins.
            const auto same = [&offer](const ProgramOffer& other) { return other.name == offer.name; };
            made.erase(std::remove_if(made.begin(), made.end(), same), made.end());
            made.push_back(std::move(offer));
        }
    }
    return made;
}

ChosenProgram PyModule::mask(std::string_view expression, const ProgramOptions& options) const {
    return state_->program(expression, options, true);
}

ChosenProgram PyModule::score(std::string_view expression, const ProgramOptions& options) const {
    return state_->program(expression, options, false);
}

namespace {

/// Evaluates files of the catalogue when a name of theirs is asked for.
class CatalogueScopes {
public:
    explicit CatalogueScopes(Interpreter& interpreter) : interpreter_(interpreter) {}

    std::optional<PyValue> find(std::string_view name) {
        const ParsedCatalogue& catalogue = parsedCatalogue();
        const auto definer = catalogue.definers.find(name);
        if (definer == catalogue.definers.end()) {
            return std::nullopt;
        }
        PyNamespace*& scope = scopes_[definer->second];
        if (scope == nullptr) {
            scope = interpreter_.newScope();
            interpreter_.runModule(*definer->second, statementsOf(*definer->second), *scope);
        }
        const auto found = scope->names.find(name);
        if (found == scope->names.end() || found->second.as<PyPoison>() != nullptr) {
            return std::nullopt;
        }
        return found->second;
    }

private:
    Interpreter& interpreter_;
    std::map<const PyText*, PyNamespace*> scopes_;
};

} // namespace

std::string PyModule::State::hiddenDefinition(std::string_view name) const {
    for (const std::unique_ptr<PyText>& text : texts) {
        if (const auto place = nestedDefinition(*text, name)) {
            return fmt::format(
                "; it is defined inside a function at {}:{}, programs are chosen from the file's own scope: move it "
                "out, or return it and choose a call of that function",
                place->file, place->line);
        }
    }
    return {};
}

std::vector<std::string_view> PyModule::State::knownNames() const {
    std::vector<std::string_view> names;
    for (const std::unique_ptr<PyText>& text : texts) {
        for (const PyStmt* const statement : statementsOf(*text)) {
            const std::set<std::string_view> binds = statementNames(*statement).binds;
            names.insert(names.end(), binds.begin(), binds.end());
        }
    }
    for (const auto& [name, text] : parsedCatalogue().definers) {
        names.push_back(name);
    }
    return names;
}

ChosenProgram PyModule::State::program(std::string_view expression, const ProgramOptions& options, bool isMask) const {
    PyText chosen;
    chosen.file = {"expression", std::string(expression)};
    const PyExprPtr expr = parsePythonExpression(chosen.file);

    Interpreter interpreter(options, builtinTable());
    CatalogueScopes catalogue(interpreter);
    interpreter.setOuterNames(
        {[&](std::string_view name) { return catalogue.find(name); }, [this] { return knownNames(); }});

    // One scope for all files; each of their statements knows its own text.
    PyNamespace* const scope = interpreter.newScope();
    std::vector<const PyStmt*> body;
    std::map<const PyStmt*, const PyText*> owners;
    for (const std::unique_ptr<PyText>& text : texts) {
        for (const PyStmt* const statement : statementsOf(*text)) {
            body.push_back(statement);
            owners.emplace(statement, text.get());
        }
    }
    const std::vector<const PyStmt*> reached = reachedStatements(body, expressionNames(*expr));
    for (const PyStmt* const statement : reached) {
        interpreter.runModule(*owners.at(statement), std::span(&statement, 1), *scope);
    }

    ChosenProgram made;
    NodeIndex result = -1;
    try {
        const PyValue function = interpreter.evaluateIn(chosen, *expr, *scope);
        result = interpreter.programResult(chosen, *expr, function, isMask);
    } catch (const PyError& error) {
        const bool simple = expr->kind == PyExprKind::Name && error.place().file == "expression";
        const std::string hidden =
            simple && scope->names.count(expr->name) == 0 ? hiddenDefinition(expr->name) : std::string();
        if (hidden.empty()) {
            throw;
        }
        throw PyError(error.place(), fmt::format("'{}' is not in the file's scope{}", expr->name, hidden),
                      error.excerpt());
    }
    made.program = interpreter.finish(result);
    made.captures = interpreter.captures(made.program);
    made.notes = std::move(interpreter.notes());
    made.numbers = std::move(interpreter.numbers());
    for (const std::unique_ptr<PyText>& text : texts) {
        made.notes.insert(made.notes.end(), text->tree.leniencies.begin(), text->tree.leniencies.end());
    }
    if (reached.size() < body.size() && !body.empty()) {
        made.notes.push_back(fmt::format("{} of {} statements of the files were not needed and not evaluated",
                                         body.size() - reached.size(), body.size()));
    }
    return made;
}

} // namespace vitrine::engine
