// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/common/json_rows.h"

#include <QCoreApplication>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/workload/experiment/result_fields.h"
#include "ui/models/common/format.h"
#include "ui/models/common/result_values.h"

namespace vitrine::ui {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kLongList = 16;
constexpr int kTextLimit = 400;

QString words(const char* text) {
    return QCoreApplication::translate("JsonRows", text);
}

bool isBytes(const QString& path) {
    return path.contains(QLatin1String("bytes")) || path.endsWith(QLatin1String("_budget")) ||
           (path.startsWith(QLatin1String("out_of_memory.")) && !path.endsWith(QLatin1String("message")));
}

QString numberText(const QString& path, double value) {
    if (engine::findResult(path.toStdString()) != nullptr) {
        return metricText(path.toStdString(), value);
    }
    const QString key = path.section(QLatin1Char('.'), -1);
    if (key.contains(QLatin1String("seconds")) && value >= 0 && value < 1e9) {
        return durationText(static_cast<base::TimeNs>(std::llround(value * 1e9)));
    }
    if (key.endsWith(QLatin1String("bandwidth"))) {
        return rateText(value);
    }
    if (isBytes(path) && value >= 0 && value < 9e18) {
        return bytesText(static_cast<std::uint64_t>(value));
    }
    if (std::floor(value) == value && std::fabs(value) < 9e15) {
        return countText(static_cast<qint64>(value));
    }
    return QString::number(value, 'g', 6);
}

class Walker {
public:
    Walker(std::vector<JsonRow>& rows, std::size_t limit) : rows_(rows), limit_(limit) {}

    void walk(const QString& path, const Json& value) {
        if (rows_.size() >= limit_) {
            return;
        }
        if (value.is_object()) {
            for (const auto& [key, inner] : value.items()) {
                walk(join(path, QString::fromStdString(key)), inner);
            }
        } else if (value.is_array() && value.size() <= kLongList && simple(value)) {
            const QString list = QString::fromStdString(value.dump(-1, ' ', false, Json::error_handler_t::replace));
            rows_.push_back({path, list.mid(1, list.size() - 2).replace(QLatin1Char(','), QStringLiteral(", ")), list});
        } else if (value.is_array() && value.size() <= kLongList) {
            for (std::size_t i = 0; i < value.size(); ++i) {
                walk(join(path, QString::number(i)), value[i]);
            }
        } else if (value.is_array()) {
            rows_.push_back({path, words("%1 values").arg(countText(static_cast<qint64>(value.size()))),
                             QString::number(static_cast<qint64>(value.size()))});
        } else {
            leaf(path, value);
        }
    }

private:
    static QString join(const QString& path, const QString& key) {
        return path.isEmpty() ? key : path + QLatin1Char('.') + key;
    }
    static bool simple(const Json& list) {
        return std::all_of(list.begin(), list.end(), [](const Json& v) { return v.is_primitive(); });
    }
    void leaf(const QString& path, const Json& value) {
        if (value.is_string()) {
            const QString text = QString::fromStdString(value.get<std::string>());
            rows_.push_back({path, text.left(kTextLimit).simplified(), text});
        } else if (value.is_boolean()) {
            const QString text = value.get<bool>() ? words("yes") : words("no");
            rows_.push_back({path, text, text});
        } else if (value.is_number()) {
            const auto raw = QString::fromStdString(value.dump());
            rows_.push_back({path, numberText(path, value.get<double>()), raw});
        }
    }

    std::vector<JsonRow>& rows_;
    std::size_t limit_;
};

} // namespace

std::vector<JsonRow> jsonRows(const std::string& json, std::size_t limit) {
    std::vector<JsonRow> rows;
    const Json value = Json::parse(json, nullptr, false);
    if (value.is_object()) {
        Walker(rows, limit).walk({}, value);
    }
    return rows;
}

FlatTreePtr runDetailTree(const sessions::RunInfo& run) {
    auto tree = std::make_shared<FlatTree>();
    tree->columns = {{words("Field"), false}, {words("Value"), false}};
    const std::pair<const char*, const std::string*> groups[] = {
        {QT_TRANSLATE_NOOP("JsonRows", "Metrics"), &run.metricsJson},
        {QT_TRANSLATE_NOOP("JsonRows", "Experiment"), &run.specJson},
        {QT_TRANSLATE_NOOP("JsonRows", "Environment"), &run.environmentJson}};
    quint64 key = 0;
    for (const auto& [title, json] : groups) {
        const std::vector<JsonRow> rows = jsonRows(*json);
        if (rows.empty()) {
            continue;
        }
        FlatNode group;
        group.cells = {FlatCell(words(title), static_cast<int>(key)), FlatCell(QString())};
        group.key = ++key;
        group.emphasis = true;
        const auto parent = static_cast<std::int32_t>(tree->nodes.size());
        tree->nodes.push_back(group);
        std::map<QString, std::int32_t> groupOf; // by path
        for (const JsonRow& row : rows) {
            FlatNode node;
            node.parent = parent;
            // A value inside others stands below their name: "error", then "holders", then "1".
            for (qsizetype dot = row.key.indexOf(QLatin1Char('.')); dot > 0;
                 dot = row.key.indexOf(QLatin1Char('.'), dot + 1)) {
                const auto [found, added] =
                    groupOf.try_emplace(row.key.left(dot), static_cast<std::int32_t>(tree->nodes.size()));
                if (added) {
                    FlatNode inner;
                    inner.parent = node.parent;
                    inner.key = ++key;
                    inner.cells = {FlatCell(row.key.left(dot).section(QLatin1Char('.'), -1)), FlatCell(QString())};
                    inner.cells[0].muted = true;
                    inner.cells[0].tip = row.key.left(dot);
                    tree->nodes.push_back(std::move(inner));
                }
                node.parent = found->second;
            }
            FlatCell name(row.key.section(QLatin1Char('.'), -1)), value(row.value, row.value, row.raw);
            name.muted = true;
            name.tip = row.key;
            value.tip = row.raw.left(2000);
            node.cells = {name, value};
            node.key = ++key;
            tree->nodes.push_back(node);
        }
    }
    return tree;
}

} // namespace vitrine::ui
