// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/regular_file.h"
#include "profiler/import/importer.h"

namespace vitrine::profiler {

namespace {

/// The rows. An importer of the product is named here.
std::vector<const Importer*>& rows() {
    static std::vector<const Importer*> all;
    return all;
}

std::string headOf(const std::string& path) {
    base::regularFileBytes(path);
    std::ifstream file(path, std::ios::binary);
    std::string head(kHeadBytes, '\0');
    if (!file) {
        throw base::BadInput(path + ": the file cannot be opened; check its name and your rights");
    }
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(file.gcount()));
    return head;
}

} // namespace

std::span<const Importer* const> importerTable() {
    return rows();
}

const Importer& importerOf(const std::string& path) {
    const std::string head = headOf(path);
    std::string known;
    for (const Importer* importer : rows()) {
        if (importer->reads(path, head)) {
            return *importer;
        }
        known += (known.empty() ? "" : ", ") + std::string(importer->title);
    }
    throw base::BadInput(
        fmt::format("{}: no importer reads this file; known formats: {}", path, known.empty() ? "none" : known));
}

ImporterRegistration::ImporterRegistration(const Importer& importer) : importer_(&importer) {
    if (std::ranges::any_of(rows(), [&](const Importer* row) { return row->name == importer.name; })) {
        throw base::Internal(fmt::format("importer {}: its name is registered already", importer.name));
    }
    rows().push_back(&importer);
}

ImporterRegistration::~ImporterRegistration() {
    std::erase(rows(), importer_);
}

} // namespace vitrine::profiler
