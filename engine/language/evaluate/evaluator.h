// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Partial evaluation of parsed texts: constants are computed, what depends on a program's inputs becomes nodes. One
// evaluator serves one request; what it counts (steps, nesting, elements) bounds every text. Its members are spread over
// evaluator.cpp (names, calls), classes.cpp, expressions.cpp, statements.cpp, match.cpp,
// operators.cpp, overloads.cpp, indexing.cpp and attributes.cpp.

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/language/builtins/builtins.h"
#include "engine/language/builtins/tensor.h"
#include "engine/language/evaluate/values.h"

namespace vitrine::engine {

class ModEvaluator {
public:
    explicit ModEvaluator(const ModOptions& options) : options_(options) {}

    /// What a name means that no scope has: names of the catalogue. None: unknown.
    using Fallback = std::function<std::optional<ModValue>(std::string_view name)>;
    void setFallback(Fallback fallback) { fallback_ = std::move(fallback); }
    /// Names for "did you mean".
    void setKnownNames(std::function<std::vector<std::string_view>()> names) { knownNames_ = std::move(names); }

    ModHeap& heap() { return heap_; }
    kernels::ProgramBuilder& builder() { return builder_; }
    const ModOptions& options() const { return options_; }

    /// Runs chosen statements of a module; a statement that fails poisons the names that it would bind.
    void runModule(const ModText& text, std::span<const PyStmt* const> statements, ModScope& scope);
    ModValue evaluateIn(const ModText& text, const PyExpr& expr, ModScope& scope);

    /// Calls `function` with symbols and returns the result's node, of type Bool (mask) or Float (score).
    ModNode programResult(const ModText& text, const PyExpr& expr, ModValue function, bool isMask);
    std::vector<CapturedTensor> captures(const kernels::Program& program) const;
    std::vector<std::string>& notes() { return notes_; }
    std::vector<ModNumber>& numbers() { return numbers_; }

    // For builtins.
    [[noreturn]] static void fail(const std::string& what) { throw base::BadInput(what); }
    void note(const std::string& what); ///< once for each text, with the place of what is being evaluated
    void step();                        ///< throws past kMaxModSteps
    void steps(std::int64_t count);
    ModValue call(ModValue callee, ModCall& call);
    ModValue call(ModValue callee, std::vector<ModValue> arguments);
    bool truth(ModValue value);
    std::int64_t integer(ModValue value, std::string_view what);
    double real(ModValue value, std::string_view what);
    std::string text(ModValue value, std::string_view what);
    kernels::DType dtype(ModValue value);
    std::vector<ModValue> iterate(ModValue value);
    bool isCallable(ModValue value) const;
    ModValue parents(); ///< super() of the method that is being called
    /// object.name(...) where the class of the text has such a method: __len__, __getitem__.
    std::optional<ModValue> special(ModValue object, std::string_view name, const std::vector<ModValue>& arguments);
    bool isSubclass(const ModClass& type, const ModClass& of, int depth = 0);
    bool inProgram() const { return inProgram_; }
    bool gradients() const { return noGradient_ == 0; }

    // Element-wise operations on numbers, tensors, symbols and arrays alike.
    ModValue binary(kernels::ProgramOp op, ModValue a, ModValue b);
    ModValue unary(kernels::ProgramOp op, ModValue a);
    ModValue select(ModValue condition, ModValue a, ModValue b);
    ModValue cast(kernels::DType dtype, ModValue value);
    ModValue operate(PyOperator op, ModValue a, ModValue b);
    ModValue logicalNot(ModValue value);
    /// A number, tensor, row or array as a constant tensor; throws for symbols.
    ModTensor* tensor(ModValue value);
    ModTensor* tensorOf(ModValue value, std::optional<kernels::DType> dtype); ///< from nested lists too
    bool isTensorLike(ModValue value) const;                                  ///< a tensor, symbol, row or array
    /// Symbols of a value as an array (row-major); BadInput when there are more than 1024.
    ModArray* array(ModValue value);
    ModValue fromArray(ModArray* array); ///< a symbol when it has no dimensions
    ModDims dimsOf(ModValue value);
    kernels::DType dtypeOf(ModValue value);
    /// The integer dtype of 8 or 16 bits that values have together; None when it is another.
    kernels::DType narrowOf(std::span<const ModValue> values);
    ModNode node(ModValue value); ///< a number, symbol or tensor of rank 0 as a node
    ModValue index(ModValue object, ModValue index);
    void assignItem(ModValue object, ModValue index, ModValue value);
    ModValue attribute(ModValue object, std::string_view name);
    std::optional<ModValue> findAttribute(ModValue object, std::string_view name);
    bool equal(ModValue a, ModValue b);
    bool less(ModValue a, ModValue b); ///< of numbers, strings, and tuples or lists of them
    ModValue concrete(ModValue value); ///< a slider's number, with a note

private:
    class Depth;
    class Inside;
    enum class Flow : std::uint8_t { Next, Break, Continue, Return };

    // Names.
    ModValue lookUp(std::string_view name);
    std::optional<ModValue> lookUpGiven(std::string_view name);
    [[noreturn]] void unknownName(std::string_view name);
    void bind(std::string_view name, ModValue value, ModScope& scope);
    ModValue slid(std::string_view name, ModValue value);
    [[noreturn]] static void throwPoison(const ModPoison& poison);
    ModPoison* poison(const ModError& error);
    ModError located(const base::BadInput& error, PyRange range) const;

    // Expressions.
    ModValue evaluate(const PyExpr& expr);
    ModValue evaluatePlaced(const PyExpr& expr);
    ModValue evaluateLiteral(const PyExpr& expr);
    ModValue evaluateCall(const PyExpr& expr);
    ModValue evaluateCompare(const PyExpr& expr);
    ModValue evaluateLogic(const PyExpr& expr);
    ModValue evaluateConditional(const PyExpr& expr);
    ModValue evaluateDisplay(const PyExpr& expr);
    ModValue evaluateDict(const PyExpr& expr);
    ModValue evaluateFormatted(const PyExpr& expr);
    ModValue evaluateComprehension(const PyExpr& expr);
    void comprehend(const PyExpr& expr, std::size_t clause, const std::function<void()>& body);
    ModValue evaluateUnary(const PyExpr& expr);
    ModValue contains(ModValue container, ModValue item);
    void place(const PyExpr& expr);

    // Statements.
    Flow execute(const PyBlock& block);
    Flow execute(const PyStmt& statement);
    Flow executePlaced(const PyStmt& statement);
    Flow executeIf(const PyStmt& statement);
    /// One round of a loop: how the loop ends, if it does.
    std::optional<Flow> runBody(const PyStmt& loop);
    Flow executeFor(const PyStmt& statement);
    Flow executeWhile(const PyStmt& statement);
    Flow executeTry(const PyStmt& statement);
    Flow executeWith(const PyStmt& statement);
    Flow executeMatch(const PyStmt& statement);
    /// What a pattern gives names to, in the order in which it does.
    using Bound = std::vector<std::pair<std::string_view, ModValue>>;
    bool matches(const PyPattern& pattern, ModValue subject, Bound& names);
    bool matchesSequence(const PyPattern& pattern, ModValue subject, Bound& names);
    void executeElsewhere(const PyStmt& statement);
    void executeDef(const PyStmt& statement);
    void executeClass(const PyStmt& statement);
    void numberMembers(const PyBlock& block);
    void executeAugmented(const PyStmt& statement);
    void executeImport(const PyStmt& statement);
    void executeImportFrom(const PyStmt& statement);
    ModValue imported(std::string_view module, std::string_view name);
    void assign(const PyExpr& target, ModValue value);
    void unpack(const PyExpr& target, ModValue value);
    [[noreturn]] void raised(const PyStmt& statement);
    void asserted(const PyStmt& statement);
    ModFunction* makeFunction(const PyFunction& code);
    ModValue decorate(ModValue value, const PyExpr& decorator);

    // Calls.
    ModValue callFunction(ModFunction& function, ModCall& call);
    static void checkKeywords(const PyFunction& code, const ModCall& call, const std::string& name);
    void bindArguments(ModFunction& function, ModCall& call, ModScope& scope);
    ModValue callClass(ModClass& type, ModCall& call);
    ModValue written(const ModBuiltin& method, ModValue result); ///< x.add_(1)
    ModValue callCombination(ModCombination& masks, ModCall& call);
    ModValue boundMember(ModValue member, ModValue self);
    std::optional<ModValue> overloaded(PyOperator op, ModValue a, ModValue b);
    std::optional<ModValue> memberOfInstance(ModValue object, std::string_view name);
    std::optional<ModValue> tensorMember(ModValue object, std::string_view name);
    std::optional<ModValue> findInClass(const ModClass& type, std::string_view name, int depth);
    std::vector<std::string_view> fieldsOf(const ModClass& type, int depth);
    std::optional<ModValue> fieldDefault(ModValue declared);
    ModFunction* bound(const ModFunction& function, ModValue self);
    std::optional<ModValue> memberOfParents(const ModSuper& parents, std::string_view name);

    // Symbols. Programs compute in 32 bits what tensors of 8 and 16 bits hold: results wrap as PyTorch's.
    static kernels::DType narrowed(kernels::DType dtype); ///< None for others
    ModNode wrapped(kernels::DType narrow, ModNode value);
    ModNode fitted(kernels::ProgramOp op, kernels::DType narrow, ModNode value);
    ModValue marked(kernels::DType narrow, ModValue value);
    ModNode constantNode(ModValue value);
    ModNode tensorNode(ModTensor& tensor);
    std::int32_t capture(ModTensor& tensor, const ModDims& dims);
    ModNode load(ModTensor& tensor, std::vector<ModNode> indices);
    ModValue row(ModTensor& tensor, std::vector<ModNode> indices);
    ModValue arrays(std::span<const ModValue> values, const std::function<ModNode(std::span<const ModNode>)>& make);
    bool needsArray(std::span<const ModValue> values);
    bool needsSymbol(std::span<const ModValue> values);
    ModValue sliderResult(ModValue number, ModNode node);
    ModOperand operand(ModValue value);
    ModValue operateObjects(PyOperator op, ModValue a, ModValue b);
    ModValue repeated(const ModSequence& sequence, ModValue count);
    ModValue combinedSets(PyOperator op, const ModSequence& left, const ModSequence& right);

    // Indexing.
    ModValue indexTensor(ModTensor& tensor, ModValue index);
    ModValue indexSequence(const std::vector<ModValue>& items, ModValue index, ModKind kind);
    ModValue indexArray(ModArray& array, ModValue index);
    std::vector<ModValue> indexItems(ModValue index);
    ModTensor* constantView(ModTensor& tensor, std::span<const ModValue> items, std::vector<int>& keptDims,
                            std::vector<ModValue>& kept);
    ModValue loadedView(ModTensor& view, std::span<const int> dims, std::span<const ModValue> kept);
    ModTensor* gathered(ModTensor& view, std::span<const int> dims, std::span<const ModValue> kept);
    void assignTensorItem(ModTensor& tensor, const std::vector<ModValue>& items, ModValue value);
    struct Slice {
        std::int64_t start, step, count;
    };
    Slice slice(const ModSlice& slice, std::int64_t extent);

    const ModOptions& options_;
    ModHeap heap_;
    kernels::ProgramBuilder builder_;
    Fallback fallback_;
    std::function<std::vector<std::string_view>()> knownNames_;
    std::vector<std::string> notes_;
    std::set<std::string> noted_;
    std::int64_t steps_ = 0;
    int depth_ = 0, calls_ = 0, noGradient_ = 0, tries_ = 0;
    bool inProgram_ = false;

    const ModText* text_ = nullptr; ///< of what is being evaluated
    ModScope* scope_ = nullptr;
    PyRange range_;
    ModValue returned_;
    const ModFunction* running_ = nullptr;
    std::map<const ModText*, std::int32_t> sources_;
    std::map<std::string, ModTensor*, std::less<>> captured_; ///< by the name that the program uses
    std::map<std::string, ModSlider*, std::less<>> sliders_;
    std::vector<ModNumber> numbers_;                       ///< that slid() has seen
    std::map<std::string, ModTensor*, std::less<>> given_; ///< options_.tensors that were read
};

} // namespace vitrine::engine
