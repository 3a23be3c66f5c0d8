// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Values of the partial evaluator: Python's constants, constant tensors, and symbols (nodes of the program that is being
// built). Objects live in one heap for the whole evaluation, so that cycles (a function in the scope that it closes over)
// need no care; the heap bounds what a text can make.

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/language/python/ast.h"
#include "engine/language/source.h"
#include "kernels/core/dtype.h"
#include "kernels/program/program_builder.h"

namespace vitrine::engine {

using ModNode = kernels::ProgramBuilder::Value;

enum class ModKind : std::uint8_t {
    String,
    Tuple,
    List,
    Set,
    Dict,
    Slice,
    Range,
    Function,
    Builtin,
    Partial,
    Combination,
    Dtype,
    Tensor,
    Row,
    Array,
    Slider,
    Module,
    Class,
    Instance,
    Super,
    Poison,
    Ignored,
};

struct ModObject {
    explicit ModObject(ModKind objectKind) : kind(objectKind) {}
    virtual ~ModObject() = default;
    ModObject(const ModObject&) = delete; // values point at it
    ModObject& operator=(const ModObject&) = delete;
    const ModKind kind;
};

class ModValue {
public:
    enum class Kind : std::uint8_t { None, Ellipsis, Bool, Int, Float, Symbol, Object };

    ModValue() = default;
    static ModValue ellipsis() { return ModValue(Kind::Ellipsis, 0); }
    static ModValue boolean(bool value) { return ModValue(Kind::Bool, value ? 1 : 0); }
    static ModValue integer(std::int64_t value) { return ModValue(Kind::Int, value); }
    static ModValue real(double value) { return ModValue(Kind::Float, std::bit_cast<std::int64_t>(value)); }
    /// `narrow`: the dtype of integers of 8 and 16 bits, which programs compute in 32.
    static ModValue symbol(ModNode node, kernels::DType narrow = kernels::DType::None) {
        return ModValue(Kind::Symbol, static_cast<std::int64_t>(narrow) << 32 | static_cast<std::uint32_t>(node));
    }
    ModValue(ModObject* object) : kind_(Kind::Object), object_(object) {} // NOLINT(google-explicit-constructor)

    Kind kind() const { return kind_; }
    bool isNone() const { return kind_ == Kind::None; }
    bool isSymbol() const { return kind_ == Kind::Symbol; }
    bool isNumber() const { return kind_ == Kind::Bool || kind_ == Kind::Int || kind_ == Kind::Float; }
    std::int64_t integer() const { return bits_; }               ///< of Bool and Int
    double real() const { return std::bit_cast<double>(bits_); } ///< of Float
    double number() const { return kind_ == Kind::Float ? real() : static_cast<double>(bits_); }
    ModNode node() const { return static_cast<ModNode>(static_cast<std::uint32_t>(bits_)); } ///< of Symbol
    kernels::DType narrow() const { return static_cast<kernels::DType>(bits_ >> 32); }       ///< of Symbol
    ModObject* object() const { return kind_ == Kind::Object ? object_ : nullptr; }
    /// Null when it is something else.
    template <class T> T* as() const {
        return kind_ == Kind::Object && T::isKind(object_->kind) ? static_cast<T*>(object_) : nullptr;
    }

private:
    ModValue(Kind kind, std::int64_t bits) : kind_(kind), bits_(bits) {}
    Kind kind_ = Kind::None;
    std::int64_t bits_ = 0; ///< of a number or node
    ModObject* object_ = nullptr;
};

/// Names of a module, a function's call or a class. Keys are views into texts that outlive the evaluation.
struct ModScope {
    ModScope* parent = nullptr;
    bool isClass = false; ///< functions inside a class do not see its names
    std::map<std::string_view, ModValue> names;
    std::map<std::string_view, ModScope*> elsewhere; ///< names that `global` and `nonlocal` send to another scope
};

template <ModKind K> struct ModObjectOf : ModObject {
    ModObjectOf() : ModObject(K) {}
    static bool isKind(ModKind which) { return which == K; }
};

struct ModString : ModObjectOf<ModKind::String> {
    std::string text;
};
struct ModSequence : ModObject {
    explicit ModSequence(ModKind which) : ModObject(which) {} ///< Tuple, List or Set
    static bool isKind(ModKind which) {
        return which == ModKind::Tuple || which == ModKind::List || which == ModKind::Set;
    }
    std::vector<ModValue> items;
};
struct ModDict : ModObjectOf<ModKind::Dict> {
    std::vector<std::pair<ModValue, ModValue>> entries;
};
struct ModSlice : ModObjectOf<ModKind::Slice> {
    ModValue start, stop, step;
};
struct ModRange : ModObjectOf<ModKind::Range> {
    std::int64_t start = 0, step = 1, count = 0;
};

/// A text whose tree is walked; both outlive the evaluation.
struct ModText {
    ModFile file;
    PyTree tree;
};

struct ModClass;
struct ModFunction : ModObjectOf<ModKind::Function> {
    const PyFunction* code = nullptr;
    const ModText* text = nullptr;
    ModScope* closure = nullptr;
    std::vector<ModValue> defaults; ///< in the order of parameters; None where there is none (PyParameter knows)
    ModValue self;                  ///< of a bound method, else None
    ModClass* owner = nullptr;      ///< of a method
    bool isStatic = false, isClassMethod = false, isProperty = false;
};

struct ModBuiltinEntry;
struct ModBuiltin : ModObjectOf<ModKind::Builtin> {
    const ModBuiltinEntry* entry = nullptr;
    ModValue self;        ///< of a method, else None
    bool inPlace = false; ///< the result is written into `self`: x.add_(1)
};
struct ModPartial : ModObjectOf<ModKind::Partial> {
    ModValue callee;
    std::vector<ModValue> arguments;
    std::vector<std::pair<std::string, ModValue>> keywords;
};
/// and_masks, or_masks.
struct ModCombination : ModObjectOf<ModKind::Combination> {
    kernels::ProgramOp op = kernels::ProgramOp::And;
    std::vector<ModValue> masks;
};
struct ModDtype : ModObjectOf<ModKind::Dtype> {
    kernels::DType dtype = kernels::DType::None;
};

struct ModStorage {
    std::vector<std::int64_t> integers; ///< of Bool and integer dtypes
    std::vector<double> reals;          ///< of the others, rounded to the dtype
};
/// A tensor whose contents are known now (but for captures of unknown contents: storage null). Strided, so that views
/// share their storage as PyTorch's do.
struct ModTensor : ModObjectOf<ModKind::Tensor> {
    kernels::DType dtype = kernels::DType::I64;
    std::vector<std::int64_t> dims, strides;
    std::int64_t offset = 0;
    std::shared_ptr<ModStorage> storage;
    std::string name;     ///< of the variable that first held it
    bool literal = false; ///< made inside a program from numbers alone: part of the program, not captured
    bool gradient = false;

    int rank() const { return static_cast<int>(dims.size()); }
    std::int64_t count() const;
    bool isReal() const;
    std::string shapeText() const; ///< "(2, 3)"
};
/// A tensor of which the leading dimensions are indexed by symbols (or, inside a program, by numbers).
struct ModRow : ModObjectOf<ModKind::Row> {
    ModTensor* tensor = nullptr;
    std::vector<ModNode> indices;
};
/// Small tensor of symbols, row-major.
struct ModArray : ModObjectOf<ModKind::Array> {
    std::vector<std::int64_t> dims;
    std::vector<ModNode> elements;
    kernels::DType narrow = kernels::DType::None; ///< see ModValue::symbol
};
/// A number that the user moves: what its value is now, and the name under which programs capture it.
struct ModSlider : ModObjectOf<ModKind::Slider> {
    ModValue value; ///< Int or Float
    ModNode node = -1;
};
struct ModModuleObject : ModObjectOf<ModKind::Module> {
    std::string path; ///< "torch.nn.functional"
};
struct ModClass : ModObjectOf<ModKind::Class> {
    std::string_view name;
    ModScope* scope = nullptr;
    std::vector<ModValue> bases;
    std::vector<std::string_view> fields; ///< annotated names: arguments of a dataclass or NamedTuple
    bool isAutogradFunction = false, isData = false;
    bool isModule = false; ///< a torch.nn.Module
};
struct ModInstance : ModObjectOf<ModKind::Instance> {
    ModClass* type = nullptr;
    std::string typeName;
    std::map<std::string, ModValue, std::less<>> attributes;
};
/// The parents of a class, as a method of it sees them.
struct ModSuper : ModObjectOf<ModKind::Super> {
    const ModClass* owner = nullptr;
    ModValue self;
};
/// What could not be evaluated at module level; an error only for who reads it.
struct ModPoison : ModObjectOf<ModKind::Poison> {
    ModPlace place;
    std::string what, excerpt;
};
/// A value that programs do not need: devices, generators, compiled kernels.
struct ModIgnored : ModObjectOf<ModKind::Ignored> {
    std::string what;
};

/// Owns all objects and scopes of one evaluation and counts what they hold.
class ModHeap {
public:
    template <class T, class... Args> T* make(Args&&... args) {
        auto made = std::make_unique<T>(std::forward<Args>(args)...);
        T* const raw = made.get();
        objects_.push_back(std::move(made));
        return raw;
    }
    ModScope* scope(ModScope* parent);
    /// Elements of lists and tensors. Throws BadInput past kMaxModConstants in all.
    void charge(std::int64_t elements);
    ModString* string(std::string text);
    ModSequence* tuple(std::vector<ModValue> items);
    ModSequence* list(std::vector<ModValue> items);
    ModValue ignored(std::string what);

private:
    std::vector<std::unique_ptr<ModObject>> objects_;
    std::vector<std::unique_ptr<ModScope>> scopes_;
    std::int64_t elements_ = 0;
};

/// "int", "list", "a tensor of shape (4,)", "a value that depends on q_idx, kv_idx or captured tensors": for messages.
std::string modTypeName(const ModValue& value);
/// As Python would print it, at most 200 characters.
std::string modText(const ModValue& value);

} // namespace vitrine::engine
