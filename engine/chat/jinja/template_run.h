// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs a template. The rules are those of Jinja's immutable sandbox: values of a caller are never changed, and names
// that begin with an underscore are hidden. Steps, depth, output and memory are bounded.

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/chat/jinja/ast.h"
#include "engine/chat/jinja/value.h"

namespace vitrine::engine::jinja {

/// The template called raise_exception: it refuses what it was given.
class TemplateRefusal : public base::BadInput {
public:
    using base::BadInput::BadInput;
};

/// Arguments of one call. What a function does not ask for is an error.
struct Call {
    Value self; ///< of a method: its object; of a filter or test: the value on its left
    std::vector<Value> items;
    std::vector<std::pair<std::string, Value>> keywords;

    /// Argument `index`, or the keyword of that name.
    std::optional<Value> optional(std::size_t index, std::string_view name);
    std::optional<Value> keyword(std::string_view name);
    std::size_t taken = 0; ///< arguments by position that were asked for
};

class TemplateRun {
public:
    /// `now`: what strftime_now tells.
    TemplateRun(const Tree& tree, Heap& heap, const std::tm& now);

    /// Renders with these variables. Throws BadInput "line L, column C: what", TemplateRefusal.
    Text render(const std::vector<std::pair<std::string, Value>>& variables);

    Heap& heap() { return heap_; }
    const std::tm& now() const { return now_; }
    [[noreturn]] void fail(std::string_view what) const;
    /// Counts work, so that no template runs for ever.
    void step(std::size_t count = 1);

    Value call(const Value& callee, Call& call);
    Value filter(std::string_view name, Call& call);
    bool test(std::string_view name, Call& call);
    /// value.name, as Jinja's getattr: an attribute first, then an item.
    Value attribute(const Value& value, std::string_view name);
    /// value[key]: an item first, then an attribute.
    Value item(const Value& value, const Value& key);
    /// The items that a for statement goes over. Reads an iterator to its end.
    std::vector<Value> iterate(const Value& value);
    bool contains(const Value& container, const Value& value);
    /// Order of two values; negative, 0 or positive.
    int compare(const Value& a, const Value& b);
    Value arithmetic(std::string_view sign, const Value& a, const Value& b);

    // What builtins ask of their arguments.
    Value need(Call& call, std::size_t index, std::string_view name);
    const Text& needText(const Value& value); ///< a string
    std::int64_t needInteger(const Value& value);
    std::int64_t wholeOf(double value) const; ///< towards 0; a number of at most 63 bits
    /// Throws when an argument was given that the function did not ask for.
    void finish(const Call& call, std::string_view name);
    Value builtin(std::string name, Value (*function)(TemplateRun&, Call&), const Value& self);

private:
    enum class Flow : std::uint8_t { Next, Break, Continue };
    /// Counts how deep statements, calls and expressions are nested, which keeps the stack within its size.
    class Depth {
    public:
        explicit Depth(TemplateRun& run);
        ~Depth() { --run_.depth_; }
        Depth(const Depth&) = delete; // counts once
        Depth& operator=(const Depth&) = delete;

    private:
        TemplateRun& run_;
    };

    Flow runBody(const std::vector<Stmt*>& body, Scope& scope, Text& out);
    Flow run(const Stmt& statement, Scope& scope, Text& out);
    Flow runIf(const Stmt& statement, Scope& scope, Text& out);
    void runFor(const Stmt& statement, Scope& scope, const Value& over, std::int64_t depth, Text& out);
    void runWith(const Stmt& statement, Scope& scope, Text& out);
    void runCallBlock(const Stmt& statement, Scope& scope, Text& out);
    Text inner(const std::vector<Stmt*>& body, Scope& scope);
    void assign(const Expr& target, const Value& value, Scope& scope);
    void append(Text& out, const Text& text);
    Value macro(const Stmt& statement, Scope& scope);
    Value callMacro(const Callable& macro, Call& call);
    Value callLoop(const Value& loop, Call& call);

    Value evaluate(const Expr& expr, Scope& scope);
    Value evaluateOperation(const Expr& expr, Scope& scope);
    Value evaluateName(const Expr& expr, Scope& scope);
    Value evaluateContainer(const Expr& expr, Scope& scope);
    Value evaluateCompare(const Expr& expr, Scope& scope);
    Value evaluateItem(const Expr& expr, Scope& scope);
    Value evaluateConcat(const Expr& expr, Scope& scope);
    Value evaluateSign(const Expr& expr, Scope& scope);
    Call arguments(const Expr& expr, Scope& scope);
    Value slice(const Value& value, const Expr& slice, Scope& scope);

    const Tree& tree_;
    Heap& heap_;
    std::tm now_;
    Scope* globals_ = nullptr;
    Place place_;
    std::uint64_t steps_ = 0;
    int depth_ = 0;
    std::size_t printed_ = 0;
};

// Tables of what is built in; null where there is no such name.
using BuiltinFunction = Value (*)(TemplateRun& run, Call& call);
BuiltinFunction filterNamed(std::string_view name);
BuiltinFunction testNamed(std::string_view name);
BuiltinFunction stringMethod(std::string_view name);
BuiltinFunction containerMethod(Kind kind, std::string_view name);
/// range, dict, namespace, raise_exception, strftime_now, cycler, joiner.
void addGlobals(TemplateRun& run, Scope& scope);

} // namespace vitrine::engine::jinja
