// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/jit/kernel_pack.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/sha256.h"
#include "base/strict_json.h"

namespace vitrine::kernels {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uint64_t kMaxPack = std::uint64_t{64} << 20;
constexpr std::size_t kMaxVariants = 4096;

/// One object of a manifest: every key must be taken, and errors name the field.
class Fields {
public:
    Fields(const json& value, std::string place) : value_(value), place_(std::move(place)) {
        if (!value_.is_object()) {
            throw base::BadInput(place_ + ": an object is expected");
        }
    }

    [[noreturn]] void fail(std::string_view field, const std::string& what) const {
        throw base::BadInput(fmt::format("{}.{}: {}", place_, field, what));
    }
    const json* find(const char* field) {
        taken_.insert(field);
        const auto it = value_.find(field);
        return it == value_.end() ? nullptr : &*it;
    }
    const json& need(const char* field) {
        const json* found = find(field);
        if (found == nullptr) {
            fail(field, "is missing");
        }
        return *found;
    }
    std::string text(const json& value, std::string_view field) const {
        if (!value.is_string()) {
            fail(field, "a text is expected");
        }
        return value.get<std::string>();
    }
    std::string needText(const char* field) { return text(need(field), field); }
    /// A short word: what appears in command lines and logs.
    std::string needWord(const char* field) {
        const std::string word = needText(field);
        const bool good = !word.empty() && word.size() <= 64 && std::all_of(word.begin(), word.end(), [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                   c == '.';
        });
        if (!good) {
            fail(field, "letters, digits, '_', '-' and '.' are allowed, at most 64");
        }
        return word;
    }
    int integer(const json& value, std::string_view field) const {
        if (!value.is_number_integer() || value.get<double>() < std::numeric_limits<int>::min() ||
            value.get<double>() > std::numeric_limits<int>::max()) {
            fail(field, "an integer is expected");
        }
        return value.get<int>();
    }
    const json& array(const json& value, std::string_view field, std::size_t least, std::size_t most) const {
        if (!value.is_array() || value.size() < least || value.size() > most) {
            fail(field, fmt::format("a list of {} to {} items is expected", least, most));
        }
        return value;
    }
    Expression expression(const json& value, std::string_view field) const {
        try {
            return Expression::parse(value.is_number_integer() ? value.dump() : text(value, field));
        } catch (const base::BadInput& error) {
            fail(field, error.message());
        }
    }
    bool boolean(const char* field, bool fallback) {
        const json* found = find(field);
        if (found != nullptr && !found->is_boolean()) {
            fail(field, "true or false is expected");
        }
        return found == nullptr ? fallback : found->get<bool>();
    }
    void finish() const {
        for (const auto& [key, unused] : value_.items()) {
            if (taken_.count(key) == 0) {
                fail(key, "is not a key of this version");
            }
        }
    }
    const std::string& place() const { return place_; }

private:
    const json& value_;
    std::string place_;
    std::set<std::string, std::less<>> taken_;
};

bool isMacroName(std::string_view name) {
    return !name.empty() && name.size() <= 128 && !(name[0] >= '0' && name[0] <= '9') &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
           });
}

/// Inside the pack: no way out of its folder.
bool isInnerPath(const std::string& path) {
    const fs::path value(path);
    return !path.empty() && value.is_relative() &&
           std::none_of(value.begin(), value.end(), [](const fs::path& part) { return part == ".."; });
}

std::array<Expression, 3> threeExpressions(Fields& fields, const char* field) {
    std::array<Expression, 3> out{Expression::parse("1"), Expression::parse("1"), Expression::parse("1")};
    if (const json* found = fields.find(field)) {
        const json& list = fields.array(*found, field, 1, 3);
        for (std::size_t i = 0; i < list.size(); ++i) {
            out[i] = fields.expression(list[i], field);
        }
    }
    return out;
}

KernelLaunchRule readLaunch(const json& value, const std::string& place) {
    Fields fields(value, place);
    KernelLaunchRule launch;
    launch.entry = fields.needText("entry");
    if (!isMacroName(launch.entry)) {
        fields.fail("entry", "the name of an extern \"C\" kernel is expected");
    }
    fields.need("grid");
    fields.need("block");
    launch.grid = threeExpressions(fields, "grid");
    launch.block = threeExpressions(fields, "block");
    launch.cluster = threeExpressions(fields, "cluster");
    if (const json* shared = fields.find("shared")) {
        launch.shared = fields.expression(*shared, "shared");
    }
    launch.dependent = fields.boolean("dependent", true);
    fields.finish();
    return launch;
}

std::map<std::string, std::int64_t> readExample(const json& value, const std::string& place) {
    Fields fields(value, place);
    std::map<std::string, std::int64_t> out;
    for (const auto& [key, item] : value.items()) {
        if (!isMacroName(key)) {
            fields.fail(key, "a variable's name is expected");
        }
        const Expression expression = fields.expression(*fields.find(key.c_str()), key);
        if (!expression.names().empty()) {
            fields.fail(key, "a number or the name of a dtype is expected");
        }
        out.emplace(key, expression.evaluate([](std::string_view) { return std::nullopt; }));
    }
    return out;
}

class PackReader {
public:
    PackReader(const std::map<std::string, std::string, std::less<>>& files, bool checksums)
        : files_(files), checksums_(checksums) {}

    KernelVariant variant(const json& value, const std::string& place) const {
        Fields fields(value, place);
        KernelVariant out;
        out.place = place;
        out.name = fields.needWord("name");
        out.family = fields.needWord("family");
        out.abi = fields.integer(fields.need("abi"), "abi");
        for (const json& arch : fields.array(fields.need("archs"), "archs", 1, 32)) {
            out.archs.push_back(fields.text(arch, "archs"));
            try {
                archNumber(out.archs.back());
            } catch (const base::BadInput& error) {
                fields.fail("archs", error.message());
            }
        }
        const json* when = fields.find("when");
        out.when = when == nullptr ? Expression::parse("1") : fields.expression(*when, "when");
        if (const json* priority = fields.find("priority")) {
            out.priority = fields.integer(*priority, "priority");
        }
        readSpecialize(fields, out);
        readDefines(fields, out);
        readFiles(fields, out);
        const json& launches = fields.array(fields.need("launches"), "launches", 1, 16);
        for (std::size_t i = 0; i < launches.size(); ++i) {
            out.launches.push_back(readLaunch(launches[i], fmt::format("{}.launches[{}]", place, i)));
        }
        if (const json* examples = fields.find("examples")) {
            fields.array(*examples, "examples", 0, 64);
            for (std::size_t i = 0; i < examples->size(); ++i) {
                out.examples.push_back(readExample((*examples)[i], fmt::format("{}.examples[{}]", place, i)));
            }
        }
        fields.finish();
        return out;
    }

private:
    static void readSpecialize(Fields& fields, KernelVariant& out) {
        const json* found = fields.find("specialize");
        if (found == nullptr) {
            return;
        }
        for (const json& name : fields.array(*found, "specialize", 0, 32)) {
            out.specialize.push_back(fields.text(name, "specialize"));
            if (!isMacroName(out.specialize.back())) {
                fields.fail("specialize", "names of variables are expected");
            }
        }
    }

    static void readDefines(Fields& fields, KernelVariant& out) {
        const json* found = fields.find("defines");
        if (found == nullptr) {
            return;
        }
        if (!found->is_object() || found->size() > 64) {
            fields.fail("defines", "an object of macros is expected");
        }
        for (const auto& [name, value] : found->items()) {
            if (!isMacroName(name)) {
                fields.fail("defines", "names of macros are expected");
            }
            out.defines.emplace_back(name, fields.text(value, "defines"));
        }
    }

    void readFiles(Fields& fields, KernelVariant& out) const {
        const json& list = fields.array(fields.need("files"), "files", 1, 64);
        for (std::size_t i = 0; i < list.size(); ++i) {
            Fields file(list[i], fmt::format("{}.files[{}]", fields.place(), i));
            KernelFile entry;
            entry.path = file.needText("path");
            if (!isInnerPath(entry.path)) {
                file.fail("path", "a path inside the pack is expected");
            }
            const json* kindField = file.find("kind");
            const std::string kind = kindField == nullptr ? "cuda" : file.text(*kindField, "kind");
            if (kind != "cuda" && kind != "ptx" && kind != "cubin") {
                file.fail("kind", "cuda, ptx or cubin is expected");
            }
            entry.kind = kind == "cuda"  ? KernelFileKind::Cuda
                         : kind == "ptx" ? KernelFileKind::Ptx
                                         : KernelFileKind::Cubin;
            checkFile(file, entry);
            out.files.push_back(std::move(entry));
            file.finish();
        }
    }

    void checkFile(Fields& file, const KernelFile& entry) const {
        const auto found = files_.find(entry.path);
        if (found == files_.end()) {
            file.fail("path", fmt::format("the pack has no file {}", entry.path));
        }
        const json* sum = file.find("sha256");
        if (!checksums_) {
            return;
        }
        if (sum == nullptr) {
            file.fail("sha256", "is missing; sha256sum FILE prints it");
        }
        const std::string actual = base::sha256Hex(found->second);
        if (file.text(*sum, "sha256") != actual) {
            file.fail("sha256",
                      fmt::format("{} has another checksum ({}): it was changed since the manifest was written",
                                  entry.path, actual));
        }
    }

    const std::map<std::string, std::string, std::less<>>& files_;
    bool checksums_;
};

std::string readWhole(const fs::path& path) {
    std::error_code error;
    const std::uintmax_t size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
    if (error || size > kMaxPack) {
        throw base::BadInput(fmt::format("{}: a regular file of at most 64 MiB is expected", path.string()));
    }
    std::ifstream in(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (!in.good() && !in.eof()) {
        throw base::BadInput(fmt::format("{}: cannot be read", path.string()));
    }
    return text;
}

/// The paths of files that manifests name, read leniently: what is wrong with them is said by the strict reading.
void collectPaths(const json& manifest, std::set<std::string>& paths) {
    if (!manifest.is_object() || !manifest.contains("variants") || !manifest["variants"].is_array()) {
        return;
    }
    for (const json& variant : manifest["variants"]) {
        if (!variant.is_object() || !variant.contains("files") || !variant["files"].is_array()) {
            continue;
        }
        for (const json& file : variant["files"]) {
            if (file.is_object() && file.contains("path") && file["path"].is_string() &&
                isInnerPath(file["path"].get<std::string>())) {
                paths.insert(file["path"].get<std::string>());
            }
        }
    }
}

} // namespace

int archNumber(std::string_view arch) {
    int number = 0;
    std::string_view digits = arch.starts_with("sm_") ? arch.substr(3) : std::string_view();
    if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) {
        digits.remove_suffix(1);
    }
    const bool good = digits.size() >= 2 && digits.size() <= 3 &&
                      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!good) {
        throw base::BadInput(fmt::format("'{}' is no arch; write sm_80, sm_90a, sm_120", arch));
    }
    for (const char c : digits) {
        number = number * 10 + (c - '0');
    }
    return number;
}

bool archRuns(std::string_view listed, std::string_view arch) {
    if (listed == arch) {
        return true;
    }
    if (listed.back() < '0' || listed.back() > '9') {
        return false;
    }
    const int from = archNumber(listed);
    const int to = archNumber(arch);
    return from / 10 == to / 10 && from <= to;
}

KernelPack KernelPack::fromFiles(const std::string& place, std::map<std::string, std::string> files, bool checksums) {
    KernelPack pack;
    pack.place_ = place;
    pack.builtin_ = !checksums;
    for (auto& [path, text] : files) {
        pack.files_.emplace(path, std::move(text));
    }
    const auto parse = [&](const std::string& path) {
        const auto found = pack.files_.find(path);
        if (found == pack.files_.end()) {
            throw base::BadInput(fmt::format("{}/{}: there is no such file; a kernel pack needs one", place, path));
        }
        return base::parseStrictJson(found->second, place + "/" + path);
    };
    const PackReader reader(pack.files_, checksums);
    const auto addVariants = [&](const json& list, const std::string& where) {
        for (std::size_t i = 0; i < list.size(); ++i) {
            pack.variants_.push_back(reader.variant(list[i], fmt::format("{}: variants[{}]", where, i)));
            if (pack.variants_.size() > kMaxVariants) {
                throw base::BadInput(fmt::format("{}: variants: at most {} are allowed", where, kMaxVariants));
            }
        }
    };
    const json manifest = parse("manifest.json");
    const std::string where = place + "/manifest.json";
    Fields fields(manifest, where + ": manifest");
    if (fields.integer(fields.need("vitrine_kernel_pack"), "vitrine_kernel_pack") != 1) {
        fields.fail("vitrine_kernel_pack", "this program reads version 1");
    }
    pack.name_ = fields.needWord("name");
    if (const json* description = fields.find("description")) {
        pack.description_ = fields.text(*description, "description");
    }
    if (const json* variants = fields.find("variants")) {
        addVariants(fields.array(*variants, "variants", 0, kMaxVariants), where);
    }
    fields.finish();
    for (const auto& [path, text] : pack.files_) {
        if (path.starts_with("manifest/") && path.ends_with(".json")) {
            const json part = parse(path);
            Fields partFields(part, place + "/" + path + ": manifest");
            addVariants(partFields.array(partFields.need("variants"), "variants", 0, kMaxVariants), place + "/" + path);
            partFields.finish();
        }
    }
    std::set<std::pair<std::string, std::string>> seen;
    for (const KernelVariant& variant : pack.variants_) {
        if (!seen.emplace(variant.family, variant.name).second) {
            throw base::BadInput(
                fmt::format("{}.name: {} has two variants {}", variant.place, variant.family, variant.name));
        }
    }
    return pack;
}

KernelPack KernelPack::load(const std::string& folder) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        throw base::BadInput(fmt::format("{}: kernel_pack: there is no such folder", folder));
    }
    std::map<std::string, std::string> files;
    std::set<std::string> manifests{"manifest.json"};
    for (fs::directory_iterator entry(fs::path(folder) / "manifest", error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().extension() == ".json") {
            manifests.insert("manifest/" + entry->path().filename().string());
        }
    }
    std::set<std::string> wanted;
    for (const std::string& path : manifests) {
        const fs::path full = fs::path(folder) / path;
        if (!fs::exists(full, error)) {
            continue;
        }
        files.emplace(path, readWhole(full));
        collectPaths(base::parseStrictJson(files.at(path), full.string()), wanted);
    }
    for (const std::string& path : wanted) {
        const fs::path full = fs::path(folder) / path;
        if (fs::is_regular_file(full, error)) {
            files.emplace(path, readWhole(full));
        }
    }
    return fromFiles(folder, std::move(files), true);
}

const KernelPack& KernelPack::builtin() {
    static const KernelPack kPack = [] {
        std::map<std::string, std::string> files;
        for (const auto& [path, text] : builtinDeviceFiles()) {
            // The manifest lies beside the sources; in the pack it is at the root.
            const bool isManifest = path.starts_with("device/manifest");
            files.emplace(isManifest ? path.substr(std::string_view("device/").size()) : path, text);
        }
        return fromFiles("builtin", std::move(files), false);
    }();
    return kPack;
}

} // namespace vitrine::kernels
