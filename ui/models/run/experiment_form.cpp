// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/run/experiment_form.h"

#include <QRegularExpression>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_values.h"
#include "engine/workload/experiment/workload_table.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;
using engine::OptionSpec;
using engine::OptionType;

/// Fields that name the input of a model in place of a prompt.
constexpr const char* kInputs[] = {"chat", "tokens", "tokens_file", "prompt_length"};

const OptionSpec* option(const QString& key) {
    return engine::findOption(key.toStdString());
}

Json parsed(const OptionSpec& spec, const QString& text) {
    if (spec.type == OptionType::KeyValues) {
        Json pairs = Json::object();
        for (const QString& part : text.split(QLatin1Char(','), Qt::SkipEmptyParts)) {
            pairs.update(engine::parseOption(spec, part.trimmed().toStdString()));
        }
        return pairs;
    }
    if (spec.type == OptionType::TextList) {
        Json texts = Json::array();
        for (const QString& line : text.split(QLatin1Char('\n'), Qt::SkipEmptyParts)) {
            texts.push_back(engine::parseOption(spec, line.toStdString()).at(0));
        }
        return texts;
    }
    return engine::parseOption(spec, text.toStdString());
}

/// The form's text of a value, so that parsing it gives the value again. Texts of a list stand on lines of their own.
QString textOfValue(const OptionSpec& spec, const Json& value) {
    if (value.is_string()) {
        return QString::fromStdString(value.get<std::string>());
    }
    QStringList parts;
    if (value.is_array()) {
        for (const Json& item : value) {
            parts << textOfValue(spec, item);
        }
        return parts.join(spec.type == OptionType::TextList ? QLatin1Char('\n') : QLatin1Char(','));
    }
    if (value.is_object()) {
        for (const auto& [key, item] : value.items()) {
            parts << QString::fromStdString(key) + QLatin1Char('=') + textOfValue(spec, item);
        }
        return parts.join(QStringLiteral(", "));
    }
    if (spec.type == OptionType::Bytes && value.is_number_unsigned()) {
        constexpr std::uint64_t kGib = 1ULL << 30;
        const auto bytes = value.get<std::uint64_t>();
        if (bytes > 0 && bytes % kGib == 0) {
            return QStringLiteral("%1GiB").arg(bytes / kGib);
        }
    }
    if (value.is_number_float()) {
        return QString::number(value.get<double>(), 'g', 12);
    }
    return QString::fromStdString(value.dump());
}

bool sameValue(const OptionSpec& spec, const QString& a, const QString& b) {
    if (a == b) {
        return true;
    }
    if (a.isEmpty() || b.isEmpty()) {
        return false;
    }
    try {
        return parsed(spec, a) == parsed(spec, b);
    } catch (const base::Error&) {
        return false;
    }
}

QString withoutPrefix(const std::string& message, const QString& key) {
    QString text = QString::fromStdString(message);
    for (const QString& prefix : {QStringLiteral("experiment: "), key + QStringLiteral(": ")}) {
        if (text.startsWith(prefix)) {
            text.remove(0, prefix.size());
        }
    }
    return text;
}

} // namespace

QString shellQuoted(const QString& word) {
    static const QRegularExpression kPlain(QStringLiteral("^[A-Za-z0-9_@%+=:,./-]+$"));
    if (kPlain.match(word).hasMatch()) {
        return word;
    }
    QString inner = word;
    inner.replace(QLatin1Char('\''), QStringLiteral("'\\''"));
    return QLatin1Char('\'') + inner + QLatin1Char('\'');
}

QString ExperimentForm::defaultText(const QString& key) {
    const OptionSpec* spec = option(key);
    return spec != nullptr ? textOf(spec->defaultText) : QString();
}

QString ExperimentForm::label(const QString& key) {
    static const std::map<QString, QString> kSpecial = {
        {QStringLiteral("kv_dtype"), tr("KV dtype")},
        {QStringLiteral("kv_pages"), tr("KV pages")},
        {QStringLiteral("simd"), tr("SIMD")},
        {QStringLiteral("tp"), tr("Tensor parallel")},
        {QStringLiteral("ep"), tr("Expert parallel")},
        {QStringLiteral("top_k"), tr("Top-k")},
        {QStringLiteral("top_p"), tr("Top-p")},
        {QStringLiteral("min_p"), tr("Min-p")},
        {QStringLiteral("vram_budget"), tr("VRAM budget")},
        {QStringLiteral("set"), tr("Config fields")},
        {QStringLiteral("ignore_eos"), tr("Ignore EOS")},
        {QStringLiteral("plan"), tr("Plan only")},
        {QStringLiteral("max_new_tokens"), tr("New tokens")},
        {QStringLiteral("lr"), tr("Learning rate")},
        {QStringLiteral("qat"), tr("QAT")},
        {QStringLiteral("kl"), tr("KL")},
        {QStringLiteral("eval_every"), tr("Evaluate every")},
        {QStringLiteral("repetition_penalty"), tr("Repetition")},
        {QStringLiteral("reasoning_effort"), tr("Reasoning")},
        {QStringLiteral("enable_thinking"), tr("Thinking")},
        {QStringLiteral("chat_template_kwargs"), tr("Template kwargs")}};
    const auto found = kSpecial.find(key);
    if (found != kSpecial.end()) {
        return found->second;
    }
    QString text = key;
    text.replace(QLatin1Char('_'), QLatin1Char(' '));
    return text.isEmpty() ? text : text.at(0).toUpper() + text.mid(1);
}

std::vector<std::pair<QString, QString>> ExperimentForm::choices(const QString& key) {
    const OptionSpec* spec = option(key);
    std::vector<std::pair<QString, QString>> out;
    if (spec == nullptr || spec->type != engine::OptionType::Choice) {
        return out;
    }
    if (spec->defaultText.empty()) {
        out.emplace_back(QString(), tr("unset"));
    }
    for (const QString& choice : textOf(spec->choices).split(QLatin1Char('|'))) {
        out.emplace_back(choice, choice);
    }
    return out;
}

ExperimentForm::ExperimentForm(QObject* parent)
    : QObject(parent), workload_(textOf(engine::workloadTable().front()->name)) {}

const engine::Workload* ExperimentForm::row() const {
    return engine::findWorkload(workload_.toStdString());
}

void ExperimentForm::setWorkload(const QString& workload) {
    if (workload_ != workload) {
        workload_ = workload;
        emit reloaded();
    }
}

bool ExperimentForm::applies(const QString& key) const {
    const OptionSpec* spec = option(key);
    return spec != nullptr && engine::optionApplies(*spec, workload_.toStdString(), plan());
}

std::vector<const OptionSpec*> ExperimentForm::options() const {
    std::vector<const OptionSpec*> out;
    for (const OptionSpec& spec : engine::optionTable()) {
        if (engine::optionApplies(spec, workload_.toStdString(), plan())) {
            out.push_back(&spec);
        }
    }
    return out;
}

QString ExperimentForm::text(const QString& key) const {
    const auto found = texts_.find(key);
    return found != texts_.end() ? found->second : defaultText(key);
}

void ExperimentForm::setText(const QString& key, const QString& text) {
    const OptionSpec* spec = option(key);
    if (spec == nullptr || text == this->text(key)) {
        return;
    }
    if (sameValue(*spec, text, defaultText(key)) || text.isEmpty()) {
        texts_.erase(key);
    } else {
        texts_[key] = text;
    }
    emit changedText(key);
    if (key == QLatin1String("plan")) {
        emit reloaded(); // planning takes more options
    }
}

void ExperimentForm::reset(const QString& key) {
    setText(key, defaultText(key));
}

void ExperimentForm::resetAll() {
    texts_.clear();
    emit reloaded();
}

bool ExperimentForm::changed(const QString& key) const {
    return texts_.contains(key);
}

QString ExperimentForm::error(const QString& key) const {
    const OptionSpec* spec = option(key);
    const auto found = texts_.find(key);
    if (spec == nullptr || found == texts_.end()) {
        return {};
    }
    try {
        parsed(*spec, found->second);
        return {};
    } catch (const base::Error& error) {
        return withoutPrefix(error.what(), key);
    }
}

std::pair<QString, QString> ExperimentForm::problem() const {
    for (const auto& [key, text] : texts_) {
        if (const QString wrong = applies(key) ? error(key) : QString(); !wrong.isEmpty()) {
            return {key, wrong};
        }
    }
    try {
        engine::Experiment::parse(experiment(), "experiment");
        return {};
    } catch (const base::Error& error) {
        QString text = QString::fromUtf8(error.what());
        text.remove(0, text.startsWith(QLatin1String("experiment: ")) ? 12 : 0);
        const QString key = text.section(QLatin1Char(':'), 0, 0);
        return option(key) != nullptr ? std::pair(key, text.mid(key.size() + 1).trimmed()) : std::pair(QString(), text);
    }
}

Json ExperimentForm::experiment() const {
    Json out = {{"vitrine", 1}, {"workload", workload_.toStdString()}};
    for (const auto& [key, text] : texts_) {
        const OptionSpec* spec = option(key);
        if (!applies(key)) {
            continue; // kept for the other workload
        }
        try {
            out[key.toStdString()] = parsed(*spec, text);
        } catch (const base::Error&) {
            continue; // problem() says so
        }
    }
    return out;
}

bool ExperimentForm::promptUsed() const {
    return applies(QStringLiteral("prompt")) &&
           std::ranges::none_of(kInputs, [this](const char* key) { return changed(QString::fromLatin1(key)); });
}

std::string ExperimentForm::experimentText() const {
    Json made = experiment();
    if (!promptUsed()) {
        made.erase("prompt");
    }
    return base::compactText(made);
}

std::string ExperimentForm::priceableText() const {
    if (text(QStringLiteral("model")).isEmpty()) {
        return {};
    }
    Json wanted = base::parsedObject(experimentText());
    const bool input = std::ranges::any_of(kInputs, [&](const char* key) { return wanted.contains(key); });
    if (row() != nullptr && row()->needsPrompt && !input && !wanted.contains("prompt")) {
        wanted["prompt_length"] = 1; // the least that a prompt can be
    }
    return base::compactText(wanted);
}

QString ExperimentForm::load(const QString& json) {
    const Json value = Json::parse(json.toStdString(), nullptr, false);
    if (!value.is_object() || !value.contains("workload") || !value["workload"].is_string()) {
        return tr("This is no experiment: it has no workload.");
    }
    workload_ = QString::fromStdString(value["workload"].get<std::string>());
    texts_.clear();
    for (const auto& [key, item] : value.items()) {
        const OptionSpec* spec = engine::findOption(key);
        const QString name = QString::fromStdString(key);
        if (spec == nullptr || item.is_null()) {
            continue;
        }
        const QString text = textOfValue(*spec, item);
        if (!text.isEmpty() && !sameValue(*spec, text, defaultText(name))) {
            texts_[name] = text;
        }
    }
    emit reloaded();
    return {};
}

QString ExperimentForm::commandLine() const {
    QStringList words = {QStringLiteral("vitrine")};
    if (plan()) {
        words << QStringLiteral("plan");
    }
    words << workload_;
    for (const OptionSpec* spec : options()) {
        const QString key = textOf(spec->key);
        const auto found = texts_.find(key);
        if (found == texts_.end() || key == QLatin1String("plan")) {
            continue;
        }
        const QString flag = QString::fromStdString(engine::optionFlag(spec->key));
        if (spec->type == OptionType::Bool && found->second == QLatin1String("true")) {
            words << flag;
            continue;
        }
        const bool pairs = spec->type == OptionType::KeyValues, texts = spec->type == OptionType::TextList;
        const QStringList values = pairs || texts
                                       ? found->second.split(QLatin1Char(pairs ? ',' : '\n'), Qt::SkipEmptyParts)
                                       : QStringList{found->second};
        for (const QString& one : values) {
            words << flag << shellQuoted(pairs ? one.trimmed() : one);
        }
    }
    return words.join(QLatin1Char(' '));
}

} // namespace vitrine::ui
