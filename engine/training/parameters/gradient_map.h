// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Where the gradient of each trained tensor is summed. A tensor is known by its address, so weights that are used twice
// (a tied embedding) have one gradient.

#include <map>

#include "kernels/core/tensor.h"

namespace vitrine::engine {

class GradientMap {
public:
    /// `gradient` has the shape of `value`, F32 or F64. Backward passes add to it.
    void add(const kernels::TensorView& value, const kernels::TensorView& gradient) { places_[value.data] = gradient; }
    /// Empty: the tensor is not trained.
    kernels::TensorView of(const kernels::TensorView& value) const {
        const auto found = places_.find(value.data);
        return value.empty() || found == places_.end() ? kernels::TensorView{} : found->second;
    }
    bool has(const kernels::TensorView& value) const { return !of(value).empty(); }

private:
    std::map<const void*, kernels::TensorView> places_;
};

} // namespace vitrine::engine
