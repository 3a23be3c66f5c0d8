// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/tokenizer/regex_properties.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

namespace vitrine::engine {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 50> kProperties = {{
    {"letter", "L"},
    {"uppercaseletter", "Lu"},
    {"lowercaseletter", "Ll"},
    {"titlecaseletter", "Lt"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"casedletter", "L&"},
    {"lc", "L&"},
    {"l&", "L&"},
    {"mark", "M"},
    {"nonspacingmark", "Mn"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"digit", "Nd"},
    {"punctuation", "P"},
    {"punct", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"openpunctuation", "Ps"},
    {"closepunctuation", "Pe"},
    {"initialpunctuation", "Pi"},
    {"finalpunctuation", "Pf"},
    {"otherpunctuation", "Po"},
    {"symbol", "S"},
    {"mathsymbol", "Sm"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"spaceseparator", "Zs"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"other", "C"},
    {"control", "Cc"},
    {"cntrl", "Cc"},
    {"format", "Cf"},
    {"surrogate", "Cs"},
    {"privateuse", "Co"},
    {"unassigned", "Cn"},
    {"any", "Any"},
    {"alpha", "Alphabetic"},
    {"alphabetic", "Alphabetic"},
    {"upper", "Uppercase"},
    {"lower", "Lowercase"},
    {"space", "White_Space"},
    {"whitespace", "White_Space"},
}};

constexpr std::array<std::string_view, 12> kBinaryProperties = {
    "emoji",       "emojipresentation", "emojimodifier", "emojimodifierbase", "emojicomponent", "extendedpictographic",
    "ideographic", "uppercase",         "lowercase",     "asciihexdigit",     "idstart",        "idcontinue",
};

} // namespace

std::string pcreProperty(const std::string& name) {
    const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '&'; };
    if (!std::all_of(name.begin(), name.end(), plain)) {
        return {};
    }
    for (const auto& [from, to] : kProperties) {
        if (name == from) {
            return std::string(to);
        }
    }
    if (name.size() <= 2) {
        std::string category = name;
        if (!category.empty()) {
            category[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(category[0])));
        }
        return category;
    }
    if (std::find(kBinaryProperties.begin(), kBinaryProperties.end(), name) != kBinaryProperties.end()) {
        return name;
    }
    // PCRE2's bare script names mean Script_Extensions; Oniguruma's mean Script.
    return "sc:" + name;
}

} // namespace vitrine::engine
