// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One typed program over (score, b, h, q_idx, kv_idx): the values that mask_mod and score_mod of FlexAttention mean, as
// a directed graph of scalar nodes. The engine makes programs from text. The interpreter, interval analysis,
// derivative, CUDA emitter and printer read them. A program holds no data: captured tensors are bound when it runs, so
// new contents (and lengths) never change its code.
//
// Semantics are PyTorch's on tensors of rank 0: indices are int32, integers wrap in their width, `//` and `%` round as
// Python's do (towards minus infinity), comparisons give Bool. Float is the compute type of the backend that runs the
// program: float32 on the device, float or double in the interpreter; loads of BF16 and F16 are widened first. A
// division of integers by zero gives 0. Comparisons and arithmetic of two Bool become logic in the builder.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/tensor.h"

namespace vitrine::kernels {

enum class ProgramType : std::uint8_t { Bool, Int32, Int64, Float };

enum class ProgramOp : std::uint8_t {
    // Inputs. Upstream is the gradient of the program's own result and occurs in derivatives only.
    Score,
    Batch,
    Head,
    Query,
    Key,
    Upstream,
    Constant, ///< Bool, Int32, Int64: `integer`; Float: `real`
    Scalar,   ///< a named number that the runner binds (a slider's window): captures of rank 0
    Load,     ///< element of capture `capture` at args (one for each dimension); see below for indices outside
    // Both Int types and Float; both args of the node's type. Pow of integers needs an exponent >= 0 (else 0).
    Add,
    Sub,
    Mul,
    FloorDiv,
    Mod,
    Min,
    Max,
    Pow,
    Neg,
    Abs,
    Sign,
    // Float.
    Div,
    Atan2, ///< the angle of the point (second arg, first arg)
    Exp,
    Exp2,
    Expm1,
    Log,
    Log2,
    Log1p,
    Sqrt,
    Rsqrt,
    Tanh,
    Sigmoid,
    Sin,
    Cos,
    Erf,
    Floor,
    Ceil,
    Round,
    Trunc,
    // Args of one common type, result Bool. There is no Gt or Ge: the builder swaps.
    Lt,
    Le,
    Eq,
    Ne,
    // Bool, Int32, Int64 (bitwise; logical on Bool).
    And,
    Or,
    Xor,
    Not,
    ShiftLeft,
    ShiftRight, ///< Int types; arithmetic; a shift outside [0, bits) gives 0 (or -1 for a negative one shifted right)
    Select,     ///< args: condition (Bool), value if true, value if false
    Cast,       ///< to the node's type; Float to integer truncates; to Bool: != 0
};

/// Where a node came from: byte range of the source text `source` (index into Program::sources), for messages, for
/// "which sub-expression blocked this cell" and for the tinted line of the editor.
struct ProgramSpan {
    std::int32_t source = -1; ///< -1: made by the builder
    std::int32_t begin = 0;
    std::int32_t end = 0;
};

struct ProgramNode {
    ProgramOp op = ProgramOp::Constant;
    ProgramType type = ProgramType::Int32;
    std::array<std::int32_t, 3> args{-1, -1, -1}; ///< earlier nodes; -1: none
    std::int32_t capture = -1;                    ///< of Load and Scalar
    std::int64_t integer = 0;
    double real = 0;
    ProgramSpan span;
};

/// A captured tensor as the program sees it: its name, what loads of it give, its rank. Dtype and extents are bound
/// later.
struct ProgramCapture {
    std::string name;
    ProgramType type = ProgramType::Int32;
    int rank = 1;                ///< 0 (a Scalar), 1, 2 or 3
    bool differentiable = false; ///< Float and not under no_grad: backward makes its gradient
};

/// Immutable once built (program_builder.h). Nodes are in topological order, equal nodes are one node.
struct Program {
    std::vector<ProgramNode> nodes;
    std::int32_t result = -1; ///< Bool for a mask, Float for a score
    std::vector<ProgramCapture> captures;
    std::vector<std::string> sources; ///< texts that spans point into

    const ProgramNode& at(std::int32_t node) const { return nodes[static_cast<std::size_t>(node)]; }
    ProgramType type() const { return at(result).type; }
    bool isMask() const { return type() == ProgramType::Bool; }
};

inline constexpr std::int32_t kMaxProgramNodes = 20000;
inline constexpr int kMaxProgramCaptures = 32;
inline constexpr int kMaxCaptureRank = 3;

/// The nodes that a node reads: the indices of a Load, the operands of an operation.
inline std::span<const std::int32_t> argsOf(const ProgramNode& node) {
    std::size_t count = 0;
    while (count < node.args.size() && node.args[count] >= 0) {
        ++count;
    }
    return {node.args.data(), count};
}

/// What a node's value can depend on, as bits; a node's set is the union of its args' sets.
inline constexpr unsigned kOnScore = 1;
inline constexpr unsigned kOnBatch = 2;
inline constexpr unsigned kOnHead = 4;
inline constexpr unsigned kOnQuery = 8;
inline constexpr unsigned kOnKey = 16;
inline constexpr unsigned kOnUpstream = 32;
inline constexpr unsigned kOnCaptures = 64;
/// One set for every node.
std::vector<unsigned> inputsOf(const Program& program);

/// Equal text means equal program whatever its captures hold: the key of kernel caches (with the emitter's version) and
/// of BlockMask caches (with the contents). Spans and sources do not count.
std::string programKey(const Program& program);

/// Tensors of the captures, in their order. Loads: an index below 0 counts from the end, as in Python; what still lies
/// outside is clamped into the tensor (a masked element may carry any index), on every backend alike.
/// Dtypes: F32, F64, BF16, F16 for Float; I32, I16, I8, U8 for Int32; I64 for Int64; Bool for Bool.
struct CaptureBinding {
    std::vector<TensorView> tensors;
};
/// Throws BadInput "NAME: what, and what to do" when a capture is missing, or has another rank or type, or no elements.
void checkCaptures(const Program& program, const CaptureBinding& binding);
/// What loads of a tensor of this dtype give; none when programs cannot read it.
std::optional<ProgramType> loadedType(DType dtype);

std::string_view programOpName(ProgramOp op);   ///< "floor_div"
std::string_view programOpSymbol(ProgramOp op); ///< Python's operator between two operands, "//"; empty: it has none
std::string_view programTypeName(ProgramType type); ///< "int32"

} // namespace vitrine::kernels
