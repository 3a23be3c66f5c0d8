// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "kernels/cuda/jit/variant_compiler.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>
#include <span>

#include "base/sha256.h"
#include "kernels/core/dtype.h"
#include "kernels/core/weight_view.h"

namespace vitrine::kernels {

namespace {

std::string macroName(std::string_view variable) {
    std::string name = "VT_";
    for (const char c : variable) {
        name.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
    }
    return name;
}

/// The text of a file that a variant may include: its own pack's, else a built-in device header.
const std::string* findFile(const KernelPack& pack, std::string_view path) {
    const auto own = pack.files().find(path);
    if (own != pack.files().end()) {
        return &own->second;
    }
    const auto& shipped = KernelPack::builtin().files();
    const auto found = shipped.find(path);
    return found == shipped.end() ? nullptr : &found->second;
}

/// Names of `#include "..."` lines.
std::vector<std::string> includedNames(std::string_view text) {
    std::vector<std::string> names;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        const std::size_t hash = line.find_first_not_of(" \t");
        if (hash == std::string_view::npos || line[hash] != '#' || line.find("include") == std::string_view::npos) {
            continue;
        }
        const std::size_t open = line.find('"');
        const std::size_t close = open == std::string_view::npos ? open : line.find('"', open + 1);
        if (close != std::string_view::npos) {
            names.emplace_back(line.substr(open + 1, close - open - 1));
        }
    }
    return names;
}

void collectHeaders(const Specialization& what, const std::string& text, std::map<std::string, std::string>& headers) {
    for (const std::string& name : includedNames(text)) {
        if (headers.count(name) != 0) {
            continue;
        }
        const bool generated = name == kGeneratedHeader && !what.generated.text.empty();
        const std::string* found = generated ? &what.generated.text : findFile(*what.pack, name);
        if (found != nullptr) {
            headers.emplace(name, *found);
            collectHeaders(what, *found, headers);
        }
    }
}

} // namespace

namespace {

/// Types and formats by name, all else as a number.
std::string valueText(std::string_view name, std::int64_t value) {
    if (name.ends_with("dtype") && value > 0 && value <= static_cast<std::int64_t>(kLastDType)) {
        return std::string(safetensorsName(static_cast<DType>(value)));
    }
    const std::span<const WeightFormatName> formats = weightFormatNames();
    const auto format = std::ranges::find_if(
        formats, [&](const WeightFormatName& known) { return static_cast<std::int64_t>(known.format) == value; });
    return name == "w_format" && format != formats.end() ? std::string(format->name) : fmt::to_string(value);
}

} // namespace

std::string Specialization::text() const {
    std::string out;
    for (const auto& [name, value] : values) {
        out += out.empty() ? "" : " ";
        const std::string shown = valueText(name, value);
        out.append(name).append("=").append(shown);
    }
    if (!generated.digest.empty()) {
        out += (out.empty() ? "program=" : " program=") + generated.digest.substr(0, 12);
    }
    return out;
}

std::optional<std::int64_t> deviceVariable(const DeviceArch& arch, std::string_view name) {
    if (name == "sms") {
        return arch.multiprocessors;
    }
    if (name == "shared_per_block") {
        return arch.sharedPerBlock;
    }
    if (name == "arch") {
        return arch.number;
    }
    return std::nullopt;
}

Specialization specialize(const KernelPack& pack, const KernelVariant& variant, const Expression::Lookup& lookup,
                          const std::string& arch, const GeneratedSource* generated) {
    Specialization out{&pack, &variant, {}, arch, generated == nullptr ? GeneratedSource{} : *generated};
    for (const std::string& name : variant.specialize) {
        const std::optional<std::int64_t> value = lookup(name);
        if (!value) {
            throw base::BadInput(fmt::format("{}.specialize: the calls of {} have no variable '{}'", variant.place,
                                             variant.family, name));
        }
        out.values.emplace_back(name, *value);
    }
    return out;
}

CompileJob compileRequest(const Specialization& what) {
    CompileJob request;
    const KernelFile& main = what.variant->files.front();
    request.name = what.pack->isBuiltin() ? main.path : what.pack->place() + "/" + main.path;
    request.source = what.pack->files().at(main.path);
    request.arch = what.arch;
    request.errorKind = what.pack->isBuiltin() ? base::ErrorKind::Internal : base::ErrorKind::BadInput;
    std::map<std::string, std::string> headers;
    collectHeaders(what, request.source, headers);
    request.headers.assign(headers.begin(), headers.end());
    for (const auto& [name, value] : what.variant->defines) {
        request.options.push_back(fmt::format("-D{}={}", name, value));
    }
    for (const auto& [name, value] : what.values) {
        request.options.push_back(fmt::format("-D{}={}", macroName(name), value));
    }
    return request;
}

std::string cubinKey(const CompileJob& request, const std::string& compilerVersion) {
    base::Sha256 hash;
    const auto add = [&hash](std::string_view text) {
        hash.add(fmt::format("{}:", text.size()));
        hash.add(text);
    };
    add("vitrine cubin 2");
    add(compilerVersion);
    add(request.arch);
    add(request.name);
    add(request.source);
    for (const std::string& option : request.options) {
        add(option);
    }
    add("headers");
    for (const auto& [name, text] : request.headers) {
        add(name);
        add(text);
    }
    return hash.hex();
}

CompiledVariant compileVariant(const Specialization& what, CubinCache& cache) {
    CompiledVariant out;
    const KernelFile& main = what.variant->files.front();
    if (main.kind != KernelFileKind::Cuda) {
        const std::string& image = what.pack->files().at(main.path);
        out.kernel.image.assign(image.begin(), image.end());
        if (main.kind == KernelFileKind::Ptx) {
            out.kernel.image.push_back(0); // the driver reads text up to a zero
        }
        out.origin = main.kind == KernelFileKind::Ptx ? "ptx file" : "cubin file";
        return out;
    }
    const CompileJob request = compileRequest(what);
    const Nvrtc* compiler = Nvrtc::find();
    const std::string key = compiler == nullptr ? std::string() : cubinKey(request, compiler->version());
    if (compiler == nullptr) {
        throw base::Unsupported(
            fmt::format("kernel {}: cannot be compiled: {}", what.variant->family, Nvrtc::whyMissing()));
    }
    const auto fromCache = [&] {
        std::optional<CompiledKernel> known = cache.load(key);
        if (known.has_value()) {
            out.kernel = std::move(*known);
            out.origin = "cubin cache";
            out.cached = true;
        }
        return known.has_value();
    };
    if (fromCache()) {
        return out;
    }
    const std::unique_ptr<CubinCache::CompileLock> lock = cache.lock(key);
    if (fromCache()) { // another process compiled it meanwhile
        return out;
    }
    out.kernel = compiler->compile(request);
    out.kernel.label = fmt::format("{}/{} {} {}", what.variant->family, what.variant->name, what.arch, what.text());
    out.origin = fmt::format("compiled in {:.2f} s", out.kernel.seconds);
    cache.store(key, out.kernel);
    return out;
}

} // namespace vitrine::kernels
