// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/values/captured_tensor.h"

namespace vitrine::engine {

kernels::TensorView CapturedTensor::view() const {
    kernels::TensorView made;
    // Views serve readers and writers alike; a captured tensor is only read.
    made.data = data ? const_cast<std::byte*>(data->data()) : nullptr;
    made.dtype = dtype;
    made.shape = shape;
    return made;
}

} // namespace vitrine::engine
