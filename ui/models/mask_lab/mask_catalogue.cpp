// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_catalogue.h"

#include <QObject>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/language/catalogue.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

/// What an entry chooses at these sizes, and the tensors that it captures.
struct Fitted {
    std::string mask, score;
    std::vector<std::string> captures;
};

std::string prefixCapture(const std::string& name, const MaskSizes& sizes) {
    std::string text = name + "=";
    for (std::int64_t b = 0; b < sizes.batch; ++b) {
        text += fmt::format("{}{}", b > 0 ? "," : "", sizes.keys / 8 + b * sizes.keys / (4 * sizes.batch));
    }
    return text;
}

std::string slopesCapture(const std::string& name, const MaskSizes& sizes) {
    std::string text = name + "=";
    for (std::int64_t h = 1; h <= sizes.heads; ++h) {
        text += fmt::format("{}{:.6g}", h > 1 ? "," : "",
                            std::exp2(-8.0 * static_cast<double>(h) / static_cast<double>(sizes.heads)));
    }
    return text;
}

/// The entry's program at sizes of the screen: its own examples are small. None: the first example does.
std::optional<Fitted> fitted(const std::string& name, const MaskSizes& sizes) {
    const std::int64_t keys = sizes.keys;
    const std::int64_t window = std::max<std::int64_t>(1, keys / 8);
    const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(std::max<std::int64_t>(keys, 64))));
    const std::string documents = engine::documentsText("doc_id", exampleLengths(keys));
    if (name == "alibi") {
        return Fitted{"causal_mask", "alibi(slopes)", {slopesCapture("slopes", sizes)}};
    }
    if (name == "batched") {
        return Fitted{fmt::format("batchify_mask_mod(causal_mask, {})", std::max<std::int64_t>(1, keys / 16)), "", {}};
    }
    if (name == "block_diffusion") {
        return Fitted{
            fmt::format("generate_block_diffusion_mask({}, {})", keys / 2, std::max<std::int64_t>(1, keys / 32)),
            "",
            {}};
    }
    if (name == "dilated") {
        return Fitted{fmt::format("generate_dilated_sliding_window({}, {})", window, 4), "", {}};
    }
    if (name == "document") {
        return Fitted{"document_causal(doc_id)", "", {documents}};
    }
    if (name == "document_prefix") {
        std::vector<std::int64_t> prefixes = exampleLengths(keys);
        const std::string lengths = fmt::format("[{}]", fmt::join(prefixes, ", "));
        std::transform(prefixes.begin(), prefixes.end(), prefixes.begin(), [](std::int64_t n) { return n / 3; });
        return Fitted{fmt::format("document_prefix({}, [{}])", lengths, fmt::join(prefixes, ", ")), "", {}};
    }
    if (name == "global_sliding") {
        return Fitted{
            fmt::format("global_sliding_causal({}, {})", window, std::max<std::int64_t>(1, keys / 64)), "", {}};
    }
    if (name == "natten") {
        const std::int64_t near = std::max<std::int64_t>(3, side / 10 * 2 + 1);
        return Fitted{fmt::format("generate_natten({}, {}, {}, {})", side, side, near, near), "", {}};
    }
    if (name == "prefix_lm") {
        return Fitted{"prefix_lm(prefix_length)", "", {prefixCapture("prefix_length", sizes)}};
    }
    if (name == "shared_prefix") {
        return Fitted{fmt::format("shared_prefix({}, {})", std::max<std::int64_t>(1, keys / 4),
                                  std::max<std::int64_t>(1, keys / 8)),
                      "",
                      {}};
    }
    if (name == "sinks") {
        return Fitted{fmt::format("attention_sinks({}, {})", std::max<std::int64_t>(1, keys / 64), window), "", {}};
    }
    if (name == "sliding_causal") {
        return Fitted{fmt::format("generate_sliding_window({})", window), "", {}};
    }
    if (name == "sliding_window") {
        return Fitted{fmt::format("sliding_window({})", window), "", {}};
    }
    if (name == "strided") {
        return Fitted{fmt::format("strided({})", std::max<std::int64_t>(2, side)), "", {}};
    }
    if (name == "relative_position" || name == "soft_cap") {
        return Fitted{"causal_mask", name == "soft_cap" ? "soft_cap(30)" : "relative_position(0.01)", {}};
    }
    return std::nullopt;
}

/// The file without the lines for lawyers and tests.
std::string shownText(const std::string& text) {
    std::string out;
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string line = text.substr(begin, end - begin);
        if (!line.starts_with("# SPDX") && !line.starts_with("# example:")) {
            out += line + "\n";
        }
        begin = end + 1;
    }
    out.erase(0, out.find_first_not_of('\n'));
    return out;
}

bool isNamePart(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Words that could be names of Python, in their order.
std::vector<std::string_view> namesIn(std::string_view text) {
    std::vector<std::string_view> names;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = at;
        while (at < text.size() && isNamePart(text[at])) {
            ++at;
        }
        if (at > begin) {
            names.push_back(text.substr(begin, at - begin));
        }
        at += at > begin ? 0 : 1;
    }
    return names;
}

/// The line begins "def NAME(" or "NAME =".
bool defines(std::string_view text, std::string_view name) {
    for (std::size_t begin = 0; begin < text.size(); begin = std::min(text.find('\n', begin), text.size()) + 1) {
        std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
        line.remove_prefix(line.starts_with("def ") ? 4 : 0);
        if (line.starts_with(name) && line.size() > name.size() && !isNamePart(line[name.size()])) {
            const std::size_t next = line.find_first_not_of(' ', name.size());
            if (next != std::string_view::npos && (line[next] == '(' || line[next] == '=' || line[next] == ':')) {
                return true;
            }
        }
    }
    return false;
}

QString readableName(const std::string& name) {
    QString text = textOf(name).replace(QLatin1Char('_'), QLatin1Char(' '));
    if (!text.isEmpty()) {
        text[0] = text[0].toUpper();
    }
    return text;
}

std::string layerText(double cap, std::int64_t window) {
    std::string text;
    if (window > 0) {
        text += fmt::format("WINDOW = {}\n\n", window);
    }
    if (cap > 0) {
        text += fmt::format("CAP = {}\n\n", cap);
    }
    text += "def mask(b, h, q_idx, kv_idx):\n    causal = q_idx >= kv_idx\n";
    text += window > 0 ? "    near = q_idx - kv_idx < WINDOW\n    return causal & near\n" : "    return causal\n";
    if (cap > 0) {
        text += "\ndef score(score, b, h, q_idx, kv_idx):\n    return torch.tanh(score / CAP) * CAP\n";
    }
    return text;
}

} // namespace

std::vector<MaskChoice> maskCatalogue(const MaskSizes& sizes) {
    std::vector<MaskChoice> choices;
    for (const engine::ModCatalogueEntry& entry : engine::modCatalogue()) {
        MaskChoice choice;
        choice.name = readableName(entry.name);
        choice.explanation = textOf(entry.explanation);
        Fitted fit;
        if (const auto found = fitted(entry.name, sizes)) {
            fit = *found;
        } else if (!entry.examples.empty()) {
            fit.mask = entry.examples.front();
        }
        choice.source.name = choice.name.toStdString();
        choice.source.text = shownText(entry.file.text);
        if (!fit.mask.empty()) {
            choice.source.text += fmt::format("\n\nmask = {}\n", fit.mask);
        }
        if (!fit.score.empty()) {
            choice.source.text += fmt::format("score = {}\n", fit.score);
        } else {
            choice.source.score = kNoMod;
        }
        choice.source.captures = fit.captures;
        choices.push_back(std::move(choice));
    }
    return choices;
}

MaskSource withCatalogueText(MaskSource source) {
    std::string copies;
    try {
        const std::vector<std::string_view> own = namesIn(source.text);
        for (const std::string* const expression : {&source.mask, &source.score}) {
            for (const std::string_view name : namesIn(*expression)) {
                const bool known = std::find(own.begin(), own.end(), name) != own.end() || defines(copies, name);
                const auto& entries = engine::modCatalogue();
                const auto entry = std::find_if(entries.begin(), entries.end(),
                                                [name](const auto& one) { return defines(one.file.text, name); });
                if (!known && entry != entries.end()) {
                    copies += shownText(entry->file.text) + "\n\n";
                }
            }
        }
    } catch (const base::Error&) {
        return source; // the program itself will say that the folder is missing
    }
    source.text.insert(0, copies);
    return source;
}

std::string suggestedCapture(const std::string& name, const MaskSizes& sizes) {
    const QString lower = textOf(name).toLower();
    const auto says = [&lower](std::initializer_list<const char*> words) {
        return std::any_of(words.begin(), words.end(),
                           [&lower](const char* word) { return lower.contains(QLatin1String(word)); });
    };
    if (says({"slope", "alibi", "scale", "weight"})) {
        return slopesCapture(name, sizes);
    }
    if (says({"prefix", "length", "lens"})) {
        return prefixCapture(name, sizes);
    }
    return engine::documentsText(name, exampleLengths(std::max(sizes.queries, sizes.keys)));
}

bool isLayerOfAModel(const MaskSource& source) {
    const auto withoutNumbers = [](std::string text) {
        std::erase_if(text, [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.'; });
        return text;
    };
    const std::string text = withoutNumbers(source.text);
    const bool own = source.mask.empty() && source.score.empty() && source.parameters.empty() &&
                     source.captures.empty() && source.tensorsFile.empty();
    for (const int window : {0, 1}) {
        for (const int cap : {0, 1}) {
            if (own && text == withoutNumbers(layerText(cap, window))) {
                return true;
            }
        }
    }
    return false;
}

MaskModel maskModel(const std::string& model, const std::map<std::string, std::string>& overrides) {
    const engine::ModelConfig config = engine::openModel(model, overrides).config;
    MaskModel out;
    std::string name = model;
    while (name.size() > 1 && name.ends_with('/')) {
        name.pop_back();
    }
    out.name = textOf(std::string_view(name).substr(name.find_last_of("/:") + 1));
    out.heads.heads = config.heads;
    out.heads.kvHeads = config.kvHeads;
    out.heads.headDim = config.headDim;
    for (std::size_t i = 0; i < config.layers.size(); ++i) {
        const std::int64_t window = config.layers[i].window;
        MaskLayer layer;
        layer.index = static_cast<int>(i);
        layer.title = window > 0 ? QObject::tr("Layer %1, sliding %2").arg(i).arg(countText(window))
                                 : QObject::tr("Layer %1, full attention").arg(i);
        layer.source.name = QStringLiteral("%1 %2").arg(out.name, layer.title).toStdString();
        layer.source.text = layerText(config.attentionSoftCap, window);
        out.layers.push_back(std::move(layer));
    }
    return out;
}

} // namespace vitrine::ui
