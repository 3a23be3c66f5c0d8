// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Work of a few kinds that comes again and again: the layers of a model.

#include <functional>
#include <map>

#include "kernels/context/meta_context.h"

namespace vitrine::kernels {

class Context;

/// Whether work like earlier work need not run: on Meta, where nothing is recorded.
bool jumpsEqualWork(Context& context);

/// Work of one kind must allocate the same, take the same time and leave memory as it found it. So on Meta, where
/// nothing is recorded, it runs until it took the same time twice, and from then on only its time passes. Elsewhere all
/// of it runs.
class EqualWork {
public:
    explicit EqualWork(Context& context);
    void run(int kind, const std::function<void()>& work);

private:
    struct Known {
        MetaContext::Times took;
        bool twice = false;
    };

    MetaContext* meta_; ///< null: all work runs
    std::map<int, Known> known_;
};

} // namespace vitrine::kernels
