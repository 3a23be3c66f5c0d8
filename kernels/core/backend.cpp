// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/core/backend.h"

namespace vitrine::kernels {

std::string_view backendName(Backend backend) {
    switch (backend) {
    case Backend::Cpu:
        return "cpu";
    case Backend::Meta:
        return "meta";
    case Backend::Cuda:
        return "cuda";
    }
    return "";
}

} // namespace vitrine::kernels
