// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/language/catalogue.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>

#include "base/resource_path.h"
#include "engine/language/python/parser.h"

namespace vitrine::engine {

namespace {

constexpr std::string_view kExample = "# example:";

std::string trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n");
    const std::size_t end = text.find_last_not_of(" \t\r\n");
    return begin == std::string_view::npos ? std::string() : std::string(text.substr(begin, end - begin + 1));
}

ModCatalogueEntry readEntry(const std::filesystem::path& path) {
    ModCatalogueEntry entry;
    entry.name = path.stem().string();
    entry.file = readPyFile(path.string());
    entry.file.name = path.filename().string();
    const PyTree tree = parsePython(entry.file);
    if (tree.body.empty() || tree.body[0]->kind != PyStmtKind::Expression ||
        tree.body[0]->exprs[0]->kind != PyExprKind::String) {
        throw base::BadInput(
            fmt::format("{}: begins without a docstring, which explains it in its first line", path.string()));
    }
    const std::string_view documentation = tree.body[0]->exprs[0]->extra->text;
    entry.explanation = trimmed(documentation.substr(0, documentation.find('\n')));
    const std::string_view text = entry.file.text;
    for (std::size_t at = text.find(kExample); at != std::string_view::npos; at = text.find(kExample, at + 1)) {
        const std::string_view line = text.substr(at, text.find('\n', at) - at);
        entry.examples.push_back(trimmed(line.substr(kExample.size())));
    }
    return entry;
}

} // namespace

const std::vector<ModCatalogueEntry>& modCatalogue() {
    static const std::vector<ModCatalogueEntry> kEntries = [] {
        const std::string folder = base::resourcePath("mods");
        std::vector<ModCatalogueEntry> entries;
        std::error_code error;
        for (const auto& item : std::filesystem::directory_iterator(folder, error)) {
            if (item.path().extension() == ".py") {
                entries.push_back(readEntry(item.path()));
            }
        }
        if (error || entries.empty()) {
            throw base::BadInput(
                fmt::format("{}: holds no attention programs{}", folder, error ? ": " + error.message() : ""));
        }
        std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
        return entries;
    }();
    return kEntries;
}

const ModCatalogueEntry* findMod(std::string_view name) {
    const std::vector<ModCatalogueEntry>& entries = modCatalogue();
    const auto found =
        std::find_if(entries.begin(), entries.end(), [name](const auto& entry) { return entry.name == name; });
    return found == entries.end() ? nullptr : &*found;
}

} // namespace vitrine::engine
