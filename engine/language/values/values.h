// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Values of an evaluation: Python's constants, constant tensors, and symbols (nodes of the program that is being
// built). Objects live in one heap for the whole evaluation, so that cycles (a function in the scope that it closes
// over) need no care; the heap bounds what a text can make.

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/language/python/ast.h"
#include "engine/language/python/parser.h"
#include "engine/language/python/source.h"
#include "kernels/core/dtype.h"
#include "kernels/program/program_builder.h"

namespace vitrine::engine {

using NodeIndex = kernels::ProgramBuilder::Value;

enum class PyKind : std::uint8_t {
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

struct PyObject {
    explicit PyObject(PyKind objectKind) : kind(objectKind) {}
    virtual ~PyObject() = default;
    PyObject(const PyObject&) = delete; // values point at it
    PyObject& operator=(const PyObject&) = delete;
    const PyKind kind;
};

class PyValue {
public:
    enum class Kind : std::uint8_t { None, Ellipsis, Bool, Int, Float, Symbol, Object };

    PyValue() = default;
    static PyValue ellipsis() { return PyValue(Kind::Ellipsis, 0); }
    static PyValue boolean(bool value) { return PyValue(Kind::Bool, value ? 1 : 0); }
    static PyValue integer(std::int64_t value) { return PyValue(Kind::Int, value); }
    static PyValue real(double value) { return PyValue(Kind::Float, std::bit_cast<std::int64_t>(value)); }
    /// `narrow`: the dtype of integers of 8 and 16 bits, which programs compute in 32.
    static PyValue symbol(NodeIndex node, kernels::DType narrow = kernels::DType::None) {
        return PyValue(Kind::Symbol, static_cast<std::int64_t>(narrow) << 32 | static_cast<std::uint32_t>(node));
    }
    PyValue(PyObject* object) : kind_(Kind::Object), object_(object) {} // NOLINT(google-explicit-constructor)

    Kind kind() const { return kind_; }
    bool isNone() const { return kind_ == Kind::None; }
    bool isSymbol() const { return kind_ == Kind::Symbol; }
    bool isNumber() const { return kind_ == Kind::Bool || kind_ == Kind::Int || kind_ == Kind::Float; }
    std::int64_t integer() const { return bits_; }               ///< of Bool and Int
    double real() const { return std::bit_cast<double>(bits_); } ///< of Float
    double number() const { return kind_ == Kind::Float ? real() : static_cast<double>(bits_); }
    NodeIndex node() const { return static_cast<NodeIndex>(static_cast<std::uint32_t>(bits_)); } ///< of Symbol
    kernels::DType narrow() const { return static_cast<kernels::DType>(bits_ >> 32); }           ///< of Symbol
    PyObject* object() const { return kind_ == Kind::Object ? object_ : nullptr; }
    /// Null when it is something else.
    template <class T> T* as() const {
        return kind_ == Kind::Object && T::isKind(object_->kind) ? static_cast<T*>(object_) : nullptr;
    }

private:
    PyValue(Kind kind, std::int64_t bits) : kind_(kind), bits_(bits) {}
    Kind kind_ = Kind::None;
    std::int64_t bits_ = 0; ///< of a number or node
    PyObject* object_ = nullptr;
};

/// Names of a module, a function's call or a class. Keys are views into texts that outlive the evaluation.
struct PyNamespace {
    PyNamespace* parent = nullptr;
    bool isClass = false; ///< functions inside a class do not see its names
    std::map<std::string_view, PyValue> names;
    std::map<std::string_view, PyNamespace*> elsewhere; ///< names that `global` and `nonlocal` send to another scope
};

template <PyKind K> struct PyObjectOf : PyObject {
    PyObjectOf() : PyObject(K) {}
    static bool isKind(PyKind which) { return which == K; }
};

struct PyString : PyObjectOf<PyKind::String> {
    std::string text;
};
struct PySequence : PyObject {
    explicit PySequence(PyKind which) : PyObject(which) {} ///< Tuple, List or Set
    static bool isKind(PyKind which) { return which == PyKind::Tuple || which == PyKind::List || which == PyKind::Set; }
    std::vector<PyValue> items;
};
struct PyDict : PyObjectOf<PyKind::Dict> {
    std::vector<std::pair<PyValue, PyValue>> entries;
};
struct PySlice : PyObjectOf<PyKind::Slice> {
    PyValue start, stop, step;
};
struct PyRangeValue : PyObjectOf<PyKind::Range> {
    std::int64_t start = 0, step = 1, count = 0;
};

struct PyClass;
struct PyFunction : PyObjectOf<PyKind::Function> {
    const PyFunctionCode* code = nullptr;
    const PyText* text = nullptr;
    PyNamespace* closure = nullptr;
    std::vector<PyValue> defaults; ///< in the order of parameters; None where there is none (PyParameter knows)
    PyValue self;                  ///< of a bound method, else None
    PyClass* owner = nullptr;      ///< of a method
    PyFunction* setter = nullptr;  ///< of a property
    bool isStatic = false, isClassMethod = false, isProperty = false;
};

struct BuiltinEntry;
struct PyBuiltin : PyObjectOf<PyKind::Builtin> {
    const BuiltinEntry* entry = nullptr;
    PyValue self;         ///< of a method, else None
    bool inPlace = false; ///< the result is written into `self`: x.add_(1)
};
struct PyPartial : PyObjectOf<PyKind::Partial> {
    PyValue callee;
    std::vector<PyValue> arguments;
    std::vector<std::pair<std::string, PyValue>> keywords;
};
/// and_masks, or_masks.
struct PyCombination : PyObjectOf<PyKind::Combination> {
    kernels::ProgramOp op = kernels::ProgramOp::And;
    std::vector<PyValue> masks;
};
struct PyDtype : PyObjectOf<PyKind::Dtype> {
    kernels::DType dtype = kernels::DType::None;
};

struct PyStorage {
    std::vector<std::int64_t> integers; ///< of Bool and integer dtypes
    std::vector<double> reals;          ///< of the others, rounded to the dtype
};
/// A tensor whose contents are known now (but for captures of unknown contents: storage null). Strided, so that views
/// share their storage as PyTorch's do.
struct PyTensor : PyObjectOf<PyKind::Tensor> {
    kernels::DType dtype = kernels::DType::I64;
    std::vector<std::int64_t> dims, strides;
    std::int64_t offset = 0;
    std::shared_ptr<PyStorage> storage;
    std::string name;     ///< of the variable that first held it
    bool literal = false; ///< made inside a program from numbers alone: part of the program, not captured
    bool gradient = false;

    int rank() const { return static_cast<int>(dims.size()); }
    std::int64_t count() const;
    bool isReal() const;
    std::string shapeText() const; ///< "(2, 3)"
};
/// A tensor of which the leading dimensions are indexed by symbols (or, inside a program, by numbers).
struct PyRow : PyObjectOf<PyKind::Row> {
    PyTensor* tensor = nullptr;
    std::vector<NodeIndex> indices;
};
/// Small tensor of symbols, row-major.
struct PyArray : PyObjectOf<PyKind::Array> {
    std::vector<std::int64_t> dims;
    std::vector<NodeIndex> elements;
    kernels::DType narrow = kernels::DType::None; ///< see PyValue::symbol
};
/// A number that the user moves: what its value is now, and the name under which programs capture it.
struct PySlider : PyObjectOf<PyKind::Slider> {
    PyValue value; ///< Int or Float
    NodeIndex node = -1;
};
struct PyModuleValue : PyObjectOf<PyKind::Module> {
    std::string path; ///< "torch.nn.functional"
};
struct PyClass : PyObjectOf<PyKind::Class> {
    std::string_view name;
    PyNamespace* scope = nullptr;
    std::vector<PyValue> bases;
    std::vector<std::string_view> fields; ///< annotated names: arguments of a dataclass or NamedTuple
    bool isAutogradFunction = false, isData = false;
    bool isModule = false; ///< a torch.nn.Module
};
struct PyInstance : PyObjectOf<PyKind::Instance> {
    PyClass* type = nullptr;
    std::string typeName;
    std::map<std::string, PyValue, std::less<>> attributes;
};
/// The parents of a class, as a method of it sees them.
struct PySuper : PyObjectOf<PyKind::Super> {
    const PyClass* owner = nullptr;
    PyValue self;
};
/// What could not be evaluated at module level. Reading it throws the error; nothing else does.
struct PyPoison : PyObjectOf<PyKind::Poison> {
    PyPlace place;
    std::string what, excerpt;
    bool notKnownHere = false;
};
/// A value that programs do not need: devices, generators, compiled kernels.
struct PyIgnored : PyObjectOf<PyKind::Ignored> {
    std::string what;
};

/// Owns all objects and scopes of one evaluation and counts what they hold.
class PyHeap {
public:
    template <class T, class... Args> T* make(Args&&... args) {
        auto made = std::make_unique<T>(std::forward<Args>(args)...);
        T* const raw = made.get();
        objects_.push_back(std::move(made));
        return raw;
    }
    PyNamespace* scope(PyNamespace* parent);
    /// Elements of lists and tensors. Throws BadInput past kMaxElements in all.
    void charge(std::int64_t elements);
    PyString* string(std::string text);
    PySequence* tuple(std::vector<PyValue> items);
    PySequence* list(std::vector<PyValue> items);
    PyValue ignored(std::string what);

private:
    std::vector<std::unique_ptr<PyObject>> objects_;
    std::vector<std::unique_ptr<PyNamespace>> scopes_;
    std::int64_t elements_ = 0;
};

/// Throws BadInput. The statement or expression that is being evaluated adds its place.
[[noreturn]] void fail(const std::string& what);
/// Throws NotKnownHere: what does not need the value goes on without it.
[[noreturn]] void failNotKnown(const std::string& what);

/// "int", "list", "a tensor of shape (4,)", "a value that depends on q_idx, kv_idx or captured tensors": for messages.
std::string pyTypeName(const PyValue& value);
/// As Python would print it, at most 200 characters.
std::string pyText(const PyValue& value);

} // namespace vitrine::engine
