// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// What may stand behind "is".
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

#include "engine/chat/jinja/python_text.h"
#include "engine/chat/jinja/template_run.h"
#include "engine/chat/jinja/text_operations.h"

namespace vitrine::engine::jinja {

namespace {

struct TestEntry {
    std::string_view name;
    BuiltinFunction call;
};

template <Kind K> Value isKind(TemplateRun& /*run*/, Call& call) {
    return Value::boolean(call.self.is(K));
}
Value isDefined(TemplateRun& /*run*/, Call& call) {
    return Value::boolean(!call.self.is(Kind::Undefined));
}
Value isTruth(TemplateRun& /*run*/, Call& call) {
    return Value::boolean(call.self.is(Kind::Bool) && call.self.integer() != 0);
}
Value isFalsehood(TemplateRun& /*run*/, Call& call) {
    return Value::boolean(call.self.is(Kind::Bool) && call.self.integer() == 0);
}
Value isNumber(TemplateRun& /*run*/, Call& call) {
    return Value::boolean(call.self.isNumber());
}
Value isIterable(TemplateRun& /*run*/, Call& call) {
    const Value& value = call.self;
    return Value::boolean(value.isSequence() || value.is(Kind::String) || value.is(Kind::Dict) ||
                          value.is(Kind::Undefined) || value.is(Kind::Loop));
}
/// Has a length and items: strings and dicts too.
Value isSequence(TemplateRun& /*run*/, Call& call) {
    const Value& value = call.self;
    return Value::boolean(value.is(Kind::List) || value.is(Kind::Tuple) || value.is(Kind::String) ||
                          value.is(Kind::Dict) || value.is(Kind::Undefined));
}
Value isCallable(TemplateRun& /*run*/, Call& call) {
    return Value::boolean(call.self.is(Kind::Callable) || call.self.is(Kind::Loop));
}
template <int Rest> Value hasRest(TemplateRun& run, Call& call) {
    return Value::boolean(equals(run.arithmetic("%", call.self, Value::integer(2)), Value::integer(Rest)));
}
Value isDivisible(TemplateRun& run, Call& call) {
    return Value::boolean(equals(run.arithmetic("%", call.self, run.need(call, 0, "num")), Value::integer(0)));
}
template <bool Equal> Value isEqual(TemplateRun& run, Call& call) {
    return Value::boolean(equals(call.self, run.need(call, 0, "other")) == Equal);
}
template <int Least, int Most> Value isOrdered(TemplateRun& run, Call& call) {
    const int order = run.compare(call.self, run.need(call, 0, "other"));
    return Value::boolean(order >= Least && order <= Most);
}
Value isIn(TemplateRun& run, Call& call) {
    return Value::boolean(run.contains(run.need(call, 0, "seq"), call.self));
}
Value isSame(TemplateRun& run, Call& call) {
    const Value other = run.need(call, 0, "other");
    const bool plain = call.self.object() == nullptr || call.self.is(Kind::String);
    return Value::boolean(call.self.kind() == other.kind() &&
                          (plain ? equals(call.self, other) : call.self.object() == other.object()));
}
template <CharacterClass Class> Value isInCase(TemplateRun& /*run*/, Call& call) {
    return Value::boolean(consistsOf(printed(call.self).bytes(), Class));
}
Value isNever(TemplateRun& /*run*/, Call& /*call*/) {
    return Value::boolean(false); // nothing is Markup here
}
Value isFilter(TemplateRun& /*run*/, Call& call) {
    return Value::boolean(filterNamed(printed(call.self).bytes()) != nullptr);
}
Value isTest(TemplateRun& /*run*/, Call& call) {
    return Value::boolean(testNamed(printed(call.self).bytes()) != nullptr);
}
Value isUndefined(TemplateRun& run, Call& call) {
    return isKind<Kind::Undefined>(run, call);
}

constexpr TestEntry kTests[] = {
    {"boolean", isKind<Kind::Bool>},
    {"callable", isCallable},
    {"defined", isDefined},
    {"divisibleby", isDivisible},
    {"eq", isEqual<true>},
    {"equalto", isEqual<true>},
    {"==", isEqual<true>},
    {"escaped", isNever},
    {"even", hasRest<0>},
    {"false", isFalsehood},
    {"filter", isFilter},
    {"float", isKind<Kind::Float>},
    {"ge", isOrdered<0, 1>},
    {">=", isOrdered<0, 1>},
    {"gt", isOrdered<1, 1>},
    {">", isOrdered<1, 1>},
    {"greaterthan", isOrdered<1, 1>},
    {"in", isIn},
    {"integer", isKind<Kind::Int>},
    {"iterable", isIterable},
    {"le", isOrdered<-1, 0>},
    {"<=", isOrdered<-1, 0>},
    {"lower", isInCase<CharacterClass::Lower>},
    {"lt", isOrdered<-1, -1>},
    {"<", isOrdered<-1, -1>},
    {"lessthan", isOrdered<-1, -1>},
    {"mapping", isKind<Kind::Dict>},
    {"ne", isEqual<false>},
    {"!=", isEqual<false>},
    {"none", isKind<Kind::None>},
    {"number", isNumber},
    {"odd", hasRest<1>},
    {"sameas", isSame},
    {"sequence", isSequence},
    {"string", isKind<Kind::String>},
    {"test", isTest},
    {"true", isTruth},
    {"undefined", isUndefined},
    {"upper", isInCase<CharacterClass::Upper>},
};

} // namespace

BuiltinFunction testNamed(std::string_view name) {
    const auto* found = std::ranges::find_if(kTests, [&](const TestEntry& entry) { return entry.name == name; });
    return found == std::end(kTests) ? nullptr : found->call;
}

bool TemplateRun::test(std::string_view name, Call& call) {
    step();
    const BuiltinFunction function = testNamed(name);
    if (function == nullptr) {
        fail(fmt::format("the test {} is not known", name));
    }
    const Value out = function(*this, call);
    finish(call, name);
    return isTrue(out);
}

} // namespace vitrine::engine::jinja
