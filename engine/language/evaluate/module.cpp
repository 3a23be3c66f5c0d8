// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <fmt/format.h>

#include "engine/language/catalogue.h"
#include "engine/language/evaluate/evaluator.h"
#include "engine/language/evaluate/names.h"
#include "engine/language/evaluate/offers.h"
#include "engine/language/python/lexer.h"
#include "engine/language/python/parser.h"

namespace vitrine::engine {

namespace {

/// The catalogue parsed, and which of its files defines a name.
struct ParsedCatalogue {
    std::vector<std::unique_ptr<ModText>> texts;
    std::map<std::string_view, const ModText*> definers;
};

std::unique_ptr<ModText> parsedText(const ModFile& file) {
    auto made = std::make_unique<ModText>();
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

std::vector<const PyStmt*> statementsOf(const ModText& text) {
    std::vector<const PyStmt*> made;
    for (const std::unique_ptr<PyStmt>& statement : text.tree.body) {
        made.push_back(statement.get());
    }
    return made;
}

} // namespace

struct ModModule::State {
    std::vector<std::unique_ptr<ModText>> texts;

    ModProgram program(std::string_view expression, const ModOptions& options, bool isMask) const;
    /// Where a name is defined that the file's scope does not have: inside another function.
    std::string hiddenDefinition(std::string_view name) const;
};

ModModule::ModModule() : state_(std::make_unique<State>()) {}
ModModule::~ModModule() = default;
ModModule::ModModule(ModModule&&) noexcept = default;
ModModule& ModModule::operator=(ModModule&&) noexcept = default;

ModModule ModModule::parse(std::span<const ModFile> files) {
    ModModule made;
    for (const ModFile& file : files) {
        made.state_->texts.push_back(parsedText(file));
    }
    return made;
}

std::vector<ModOffer> ModModule::offers() const {
    std::vector<ModOffer> made;
    for (const std::unique_ptr<ModText>& text : state_->texts) {
        for (ModOffer& offer : offersOf(*text)) {
            // A later definition of the same name wins.
            const auto same = [&offer](const ModOffer& other) { return other.name == offer.name; };
            made.erase(std::remove_if(made.begin(), made.end(), same), made.end());
            made.push_back(std::move(offer));
        }
    }
    return made;
}

ModProgram ModModule::mask(std::string_view expression, const ModOptions& options) const {
    return state_->program(expression, options, true);
}

ModProgram ModModule::score(std::string_view expression, const ModOptions& options) const {
    return state_->program(expression, options, false);
}

namespace {

/// Evaluates files of the catalogue when a name of theirs is asked for.
class CatalogueScopes {
public:
    explicit CatalogueScopes(ModEvaluator& evaluator) : evaluator_(evaluator) {}

    std::optional<ModValue> find(std::string_view name) {
        const ParsedCatalogue& catalogue = parsedCatalogue();
        const auto definer = catalogue.definers.find(name);
        if (definer == catalogue.definers.end()) {
            return std::nullopt;
        }
        ModScope*& scope = scopes_[definer->second];
        if (scope == nullptr) {
            scope = evaluator_.heap().scope(nullptr);
            evaluator_.runModule(*definer->second, statementsOf(*definer->second), *scope);
        }
        const auto found = scope->names.find(name);
        if (found == scope->names.end() || found->second.as<ModPoison>() != nullptr) {
            return std::nullopt;
        }
        return found->second;
    }

private:
    ModEvaluator& evaluator_;
    std::map<const ModText*, ModScope*> scopes_;
};

} // namespace

std::string ModModule::State::hiddenDefinition(std::string_view name) const {
    for (const std::unique_ptr<ModText>& text : texts) {
        if (const auto place = nestedDefinition(*text, name)) {
            return fmt::format(
                "; it is defined inside a function at {}:{}, programs are chosen from the file's own scope: move it "
                "out, or return it and choose a call of that function",
                place->file, place->line);
        }
    }
    return {};
}

ModProgram ModModule::State::program(std::string_view expression, const ModOptions& options, bool isMask) const {
    ModText chosen;
    chosen.file = {"expression", std::string(expression)};
    const PyExprPtr expr = parsePythonExpression(chosen.file);

    ModEvaluator evaluator(options);
    CatalogueScopes catalogue(evaluator);
    evaluator.setFallback([&](std::string_view name) { return catalogue.find(name); });
    evaluator.setKnownNames([this] {
        std::vector<std::string_view> names;
        for (const std::unique_ptr<ModText>& text : texts) {
            for (const PyStmt* const statement : statementsOf(*text)) {
                const std::set<std::string_view> binds = statementNames(*statement).binds;
                names.insert(names.end(), binds.begin(), binds.end());
            }
        }
        for (const auto& [name, text] : parsedCatalogue().definers) {
            names.push_back(name);
        }
        return names;
    });

    // One scope for all files; each of their statements knows its own text.
    ModScope* const scope = evaluator.heap().scope(nullptr);
    std::vector<const PyStmt*> body;
    std::map<const PyStmt*, const ModText*> owners;
    for (const std::unique_ptr<ModText>& text : texts) {
        for (const PyStmt* const statement : statementsOf(*text)) {
            body.push_back(statement);
            owners.emplace(statement, text.get());
        }
    }
    const std::vector<const PyStmt*> reached = reachedStatements(body, expressionNames(*expr));
    for (const PyStmt* const statement : reached) {
        evaluator.runModule(*owners.at(statement), std::span(&statement, 1), *scope);
    }

    ModProgram made;
    ModNode result = -1;
    try {
        const ModValue function = evaluator.evaluateIn(chosen, *expr, *scope);
        result = evaluator.programResult(chosen, *expr, function, isMask);
    } catch (const ModError& error) {
        const bool simple = expr->kind == PyExprKind::Name && error.place().file == "expression";
        const std::string hidden =
            simple && scope->names.count(expr->name) == 0 ? hiddenDefinition(expr->name) : std::string();
        if (hidden.empty()) {
            throw;
        }
        throw ModError(error.place(), fmt::format("'{}' is not in the file's scope{}", expr->name, hidden),
                       error.excerpt());
    }
    made.program = evaluator.builder().finish(result);
    made.captures = evaluator.captures(made.program);
    made.notes = std::move(evaluator.notes());
    made.numbers = std::move(evaluator.numbers());
    for (const std::unique_ptr<ModText>& text : texts) {
        made.notes.insert(made.notes.end(), text->tree.leniencies.begin(), text->tree.leniencies.end());
    }
    if (reached.size() < body.size() && !body.empty()) {
        made.notes.push_back(fmt::format("{} of {} statements of the files were not needed and not evaluated",
                                         body.size() - reached.size(), body.size()));
    }
    return made;
}

} // namespace vitrine::engine
