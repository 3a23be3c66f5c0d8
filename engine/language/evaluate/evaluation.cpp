// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/evaluate/evaluation.h"

#include <fmt/format.h>

#include "engine/language/python/lexer.h"

namespace vitrine::engine {

void Evaluation::steps(std::int64_t count) {
    steps_ += count;
    if (steps_ > kMaxSteps) {
        fail(fmt::format("evaluation takes more than {} steps; give large tables as tensors by a safetensors file",
                         kMaxSteps));
    }
}

void Evaluation::note(const std::string& what) {
    if (text == nullptr || !noted_.insert(what).second || noted_.size() > 100) {
        return;
    }
    const PyPlace place = placeOf(text->file, range.begin, range.end);
    notes_.push_back(fmt::format("{}:{}:{}: {}", place.file, place.line, place.column, what));
}

PyError Evaluation::located(const base::BadInput& error, PyRange where) const {
    const PyError made = errorAt(text->file, where.begin, where.end, error.message());
    return {made.place(), made.description(), made.excerpt(), dynamic_cast<const NotKnownHere*>(&error) != nullptr};
}

PyPoison* Evaluation::poison(const PyError& error) {
    auto* const made = heap.make<PyPoison>();
    made->place = error.place();
    made->what = error.description();
    made->excerpt = error.excerpt();
    made->notKnownHere = error.notKnownHere();
    return made;
}

void Evaluation::place(const PyExpr& expr) {
    range = expr.range;
    auto found = sources_.find(text);
    if (found == sources_.end()) {
        found = sources_.emplace(text, builder.addSource(text->file.text)).first;
    }
    builder.setSpan(
        {found->second, static_cast<std::int32_t>(expr.range.begin), static_cast<std::int32_t>(expr.range.end)});
}

EvaluationDepth::EvaluationDepth(Evaluation& evaluation) : evaluation_(evaluation) {
    if (evaluation_.depth_ >= kMaxEvaluationDepth) {
        fail("expressions, blocks and calls are nested too deeply");
    }
    ++evaluation_.depth_;
}

PlaceGuard::PlaceGuard(Evaluation& evaluation, const PyText* text, PyNamespace* scope)
    : evaluation_(evaluation), text_(evaluation.text), scope_(evaluation.scope), range_(evaluation.range) {
    evaluation.text = text;
    evaluation.scope = scope;
}

PlaceGuard::~PlaceGuard() {
    evaluation_.text = text_;
    evaluation_.scope = scope_;
    evaluation_.range = range_;
}

void throwPoison(const PyPoison& poison) {
    throw PyError(poison.place, poison.what, poison.excerpt, poison.notKnownHere);
}

} // namespace vitrine::engine
