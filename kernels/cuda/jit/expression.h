// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The integer expressions of kernel packs: conditions, grids, sizes (docs/kernel-packs.md). 64-bit signed numbers;
// comparisons and logic give 0 or 1; `&&`, `||` and `?:` evaluate only the side that they need.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vitrine::kernels {

class Expression {
public:
    /// The value of a name; nothing when the name is unknown.
    using Lookup = std::function<std::optional<std::int64_t>(std::string_view name)>;

    /// The constant 0.
    Expression();
    /// Throws BadInput "column N: what". At most 4096 characters and 64 levels.
    static Expression parse(std::string_view text);

    /// Throws BadInput for an unknown name, a division by zero or a value that does not fit 64 bits.
    std::int64_t evaluate(const Lookup& lookup) const;

    const std::string& text() const { return text_; }
    /// Names that occur, in order of first use. Dtype names are constants and not among them.
    const std::vector<std::string>& names() const { return names_; }

    struct Node {
        enum class Kind : std::uint8_t {
            Number,
            Name,
            Negate,
            Not,
            Add,
            Subtract,
            Multiply,
            Divide,
            Modulo,
            Less,
            LessEqual,
            Greater,
            GreaterEqual,
            Equal,
            NotEqual,
            And,
            Or,
            Choose,
            Min,
            Max,
            CeilDiv,
        };
        Kind kind = Kind::Number;
        std::int64_t value = 0; ///< of a number; the place in names() of a name
        int a = -1, b = -1, c = -1;
    };

private:
    std::int64_t evaluate(int node, const Lookup& lookup) const;

    std::string text_ = "0";
    std::vector<Node> nodes_;
    std::vector<std::string> names_;
    int root_ = 0;
};

} // namespace vitrine::kernels
