// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inside of ProgramBuilder: nodes with their hash table, and what is certain about an operation.

#include <cstring>
#include <limits>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "kernels/program/program_builder.h"
#include "kernels/program/program_fold.h"

namespace vitrine::kernels {

struct ProgramNodeKey {
    ProgramNode node;
    bool weak = false;

    std::uint64_t realBits() const {
        std::uint64_t bits = 0;
        std::memcpy(&bits, &node.real, sizeof bits);
        return bits;
    }
    friend bool operator==(const ProgramNodeKey& a, const ProgramNodeKey& b) {
        return a.node.op == b.node.op && a.node.type == b.node.type && a.node.args == b.node.args &&
               a.node.capture == b.node.capture && a.node.integer == b.node.integer && a.realBits() == b.realBits() &&
               a.weak == b.weak;
    }
};

struct ProgramNodeHash {
    std::size_t operator()(const ProgramNodeKey& key) const {
        std::uint64_t hash = 1469598103934665603ULL;
        const auto mix = [&hash](std::uint64_t value) { hash = (hash ^ value) * 1099511628211ULL ^ (hash >> 29); };
        mix(static_cast<std::uint64_t>(key.node.op) * 8 + static_cast<std::uint64_t>(key.node.type));
        for (const std::int32_t arg : key.node.args) {
            mix(static_cast<std::uint32_t>(arg));
        }
        mix(static_cast<std::uint32_t>(key.node.capture));
        mix(static_cast<std::uint64_t>(key.node.integer));
        mix(key.realBits() * 2 + (key.weak ? 1 : 0));
        return hash;
    }
};

inline bool isBitwise(ProgramOp op) {
    return op == ProgramOp::And || op == ProgramOp::Or || op == ProgramOp::Xor;
}
inline bool isShift(ProgramOp op) {
    return op == ProgramOp::ShiftLeft || op == ProgramOp::ShiftRight;
}
inline bool isComparison(ProgramOp op) {
    return op >= ProgramOp::Lt && op <= ProgramOp::Ne;
}
inline bool isRounding(ProgramOp op) {
    return op >= ProgramOp::Floor && op <= ProgramOp::Trunc;
}
inline bool givesFloat(ProgramOp op) {
    return op == ProgramOp::Div || op == ProgramOp::Atan2;
}
inline bool isBinary(ProgramOp op) {
    return (op >= ProgramOp::Add && op <= ProgramOp::Pow) || givesFloat(op) || isComparison(op) || isBitwise(op) ||
           isShift(op);
}

inline bool fitsInt32(std::int64_t value) {
    return value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
}

struct ProgramBuilder::State {
    Program program;
    std::vector<std::uint8_t> weak; ///< of every node
    std::unordered_map<ProgramNodeKey, Value, ProgramNodeHash> known;
    ProgramSpan span;

    const ProgramNode& at(Value value) const {
        if (value < 0 || static_cast<std::size_t>(value) >= program.nodes.size()) {
            throw base::Internal("program: a value that this builder did not make");
        }
        return program.at(value);
    }
    bool isWeak(Value value) const { return weak[static_cast<std::size_t>(value)] != 0; }
    bool isConstant(Value value) const { return at(value).op == ProgramOp::Constant; }
    bool isConstant(Value value, double number) const {
        return isConstant(value) && constantOf(value).number() == number;
    }
    ProgramConstant constantOf(Value value) const {
        const ProgramNode& node = at(value);
        return {node.type, node.integer, node.real};
    }

    /// The node, or the equal one that exists.
    Value make(ProgramNode node, bool isWeak = false);
    Value make(ProgramOp op, ProgramType type, Value a, Value b = -1, Value c = -1) {
        ProgramNode node;
        node.op = op;
        node.type = type;
        node.args = {a, b, c};
        return make(node);
    }
    Value constant(const ProgramConstant& value, bool isWeak) {
        ProgramNode node;
        node.type = value.type;
        node.integer = value.integer;
        node.real = value.real;
        return make(node, isWeak);
    }

    Value cast(ProgramType type, Value value);
    Value negated(Value value);
    ProgramType common(Value left, Value right) const;
    Value logic(ProgramOp op, Value left, Value right);
    Value simplified(ProgramOp op, Value left, Value right);
    Value simplifiedIntegers(ProgramOp op, Value left, Value right);
    Value simplifiedLogic(ProgramOp op, Value left, Value right);
};

} // namespace vitrine::kernels
