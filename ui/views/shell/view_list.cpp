// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/view_list.h"

#include "ui/views/batching/batching_view.h"
#include "ui/views/compare/compare_view.h"
#include "ui/views/finetune/finetune_view.h"
#include "ui/views/kernels/kernels_view.h"
#include "ui/views/kv_cache/kv_view.h"
#include "ui/views/load/load_view.h"
#include "ui/views/mask_lab/mask_lab_view.h"
#include "ui/views/memory/memory_view.h"
#include "ui/views/planner/planner_view.h"
#include "ui/views/precision/precision_view.h"
#include "ui/views/queue/queue_view.h"
#include "ui/views/rl/rl_view.h"
#include "ui/views/run/run_view.h"
#include "ui/views/sessions/sessions_view.h"

namespace vitrine::ui {

namespace {

View* makeRun(const ViewServices& context, QWidget* parent) {
    return new RunView(context, parent);
}

View* makeQueue(const ViewServices& context, QWidget* parent) {
    return new QueueView(context, parent);
}

View* makeMemory(const ViewServices& context, QWidget* parent) {
    return new MemoryView(context, parent);
}

View* makeKernels(const ViewServices& context, QWidget* parent) {
    return new KernelsView(context, parent);
}

View* makeKvCache(const ViewServices& context, QWidget* parent) {
    return new KvView(context, parent);
}

View* makeBatching(const ViewServices& context, QWidget* parent) {
    return new BatchingView(context, parent);
}

View* makeMask(const ViewServices& context, QWidget* parent) {
    return new MaskLabView(context, parent);
}

View* makeLoad(const ViewServices& context, QWidget* parent) {
    return new LoadView(context, parent);
}

View* makePrecision(const ViewServices& context, QWidget* parent) {
    return new PrecisionView(context, parent);
}

View* makeFineTune(const ViewServices& context, QWidget* parent) {
    return new FinetuneView(context, parent);
}

View* makeRl(const ViewServices& context, QWidget* parent) {
    return new RlView(context, parent);
}

View* makePlanner(const ViewServices& context, QWidget* parent) {
    return new PlannerView(context, parent);
}

View* makeCompare(const ViewServices& context, QWidget* parent) {
    return new CompareView(context, parent);
}

View* makeSessions(const ViewServices& context, QWidget* parent) {
    return new SessionsView(context, parent);
}

} // namespace

const std::vector<ViewEntry>& viewEntries() {
    static const std::vector<ViewEntry> kEntries = {
        {"run", QT_TRANSLATE_NOOP("ViewList", "Run"), "run", makeRun},
        {"queue", QT_TRANSLATE_NOOP("ViewList", "Queue"), "run", makeQueue, "run"},
        {"memory", QT_TRANSLATE_NOOP("ViewList", "Memory"), "memory", makeMemory},
        {"kernels", QT_TRANSLATE_NOOP("ViewList", "Kernels"), "kernels", makeKernels},
        {"kv-cache", QT_TRANSLATE_NOOP("ViewList", "KV cache"), "kv-cache", makeKvCache},
        {"batching", QT_TRANSLATE_NOOP("ViewList", "Batching"), "batching", makeBatching},
        {"mask", QT_TRANSLATE_NOOP("ViewList", "Mask Lab"), "mask", makeMask},
        {"load", QT_TRANSLATE_NOOP("ViewList", "Load"), "load", makeLoad},
        {"precision", QT_TRANSLATE_NOOP("ViewList", "Precision"), "precision", makePrecision},
        {"fine-tune", QT_TRANSLATE_NOOP("ViewList", "Fine-tune"), "fine-tune", makeFineTune},
        {"rl", QT_TRANSLATE_NOOP("ViewList", "RL"), "rl", makeRl},
        {"planner", QT_TRANSLATE_NOOP("ViewList", "Planner"), "planner", makePlanner},
        {"compare", QT_TRANSLATE_NOOP("ViewList", "Compare"), "compare", makeCompare},
        {"sessions", QT_TRANSLATE_NOOP("ViewList", "Sessions"), "sessions", makeSessions},
    };
    return kEntries;
}

} // namespace vitrine::ui
