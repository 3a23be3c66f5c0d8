// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The functions that every template can call.
#include <array>
#include <ctime>
#include <fmt/format.h>
#include <utility>

#include "engine/chat/jinja/python_text.h"
#include "engine/chat/jinja/template_run.h"

namespace vitrine::engine::jinja {

namespace {

Value range(TemplateRun& run, Call& call) {
    constexpr std::int64_t kMostNumbers = 100'000; // of Jinja's sandbox
    const std::int64_t first = run.needInteger(run.need(call, 0, "start"));
    const std::optional<Value> second = call.optional(1, "stop");
    const std::int64_t start = second ? first : 0;
    const std::int64_t stop = second ? run.needInteger(*second) : first;
    const std::int64_t step = run.needInteger(call.optional(2, "step").value_or(Value::integer(1)));
    if (step == 0) {
        run.fail("the step of range cannot be 0");
    }
    std::vector<Value> items;
    for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
        if (static_cast<std::int64_t>(items.size()) >= kMostNumbers) {
            run.fail(fmt::format("range gives more than {} numbers", kMostNumbers));
        }
        items.push_back(Value::integer(i));
        if (__builtin_add_overflow(i, step, &i)) {
            break;
        }
    }
    run.step(items.size() / 8);
    return run.heap().list(std::move(items));
}

/// dict(...) and namespace(...): a dict or pairs, then names.
Value entriesOf(TemplateRun& run, Call& call, Kind kind) {
    const Value out = kind == Kind::Dict ? run.heap().dict() : Value(kind, run.heap().make<Dict>());
    if (const std::optional<Value> given = call.optional(0, "entries"); given && given->is(Kind::Dict)) {
        out.dict().entries = given->dict().entries;
    } else if (given) {
        for (const Value& pair : run.iterate(*given)) {
            const std::vector<Value> two = run.iterate(pair);
            if (two.size() != 2) {
                run.fail("dict needs pairs of a key and a value");
            }
            run.step(out.dict().entries.size() / 8 + 1);
            out.dict().set(two[0], two[1]);
        }
    }
    for (const auto& [name, value] : call.keywords) {
        if (kind == Kind::Namespace && name.starts_with('_')) {
            run.fail("names that begin with an underscore cannot be set");
        }
        out.dict().set(run.heap().string(name), value);
    }
    call.keywords.clear();
    return out;
}

Value makeDict(TemplateRun& run, Call& call) {
    return entriesOf(run, call, Kind::Dict);
}
Value makeNamespace(TemplateRun& run, Call& call) {
    return entriesOf(run, call, Kind::Namespace);
}

Value raiseException(TemplateRun& run, Call& call) {
    throw TemplateRefusal(printed(run.need(call, 0, "message")).bytes());
}

Value strftimeNow(TemplateRun& run, Call& call) {
    const Value format = run.need(call, 0, "format");
    std::array<char, 256> buffer{};
    const std::string& text = run.needText(format).bytes();
    const std::size_t size = std::strftime(buffer.data(), buffer.size(), text.c_str(), &run.now());
    if (size == 0 && !text.empty()) {
        run.fail("strftime_now: the format gives nothing or too much");
    }
    return run.heap().string(std::string(buffer.data(), size));
}

Value joinerCall(TemplateRun& run, Call& call) {
    // self is the text; the first call gives nothing.
    std::vector<Value>& state = call.self.sequence().items;
    const Value out = state.size() > 1 ? state[0] : run.heap().string("");
    state.resize(2, Value::none());
    return out;
}

Value makeJoiner(TemplateRun& run, Call& call) {
    const Value separator = call.optional(0, "sep").value_or(run.heap().string(", "));
    return run.builtin("joiner", joinerCall, run.heap().list({separator}));
}

Value cyclerCall(TemplateRun& run, Call& /*call*/) {
    run.fail("a cycler is no function; call its next()");
}

Value makeCycler(TemplateRun& run, Call& call) {
    if (call.items.empty()) {
        run.fail("cycler needs values");
    }
    call.taken = call.items.size();
    const Value out = run.builtin("cycler", cyclerCall, Value());
    out.callable().state = run.heap().list(call.items);
    return out;
}

} // namespace

void addGlobals(TemplateRun& run, Scope& scope) {
    constexpr std::pair<std::string_view, BuiltinFunction> kGlobals[] = {
        {"range", range},
        {"dict", makeDict},
        {"namespace", makeNamespace},
        {"raise_exception", raiseException},
        {"strftime_now", strftimeNow},
        {"joiner", makeJoiner},
        {"cycler", makeCycler},
    };
    for (const auto& [name, function] : kGlobals) {
        scope.set(name, run.builtin(std::string(name), function, Value()));
    }
}

} // namespace vitrine::engine::jinja
