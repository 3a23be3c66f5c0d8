// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/run/run_command.h"

#include <QStringList>
#include <nlohmann/json.hpp>

#include "ui/models/run/experiment_form.h"

namespace vitrine::ui {

QString runCommandLine(const sessions::RunInfo& run) {
    const nlohmann::json spec = nlohmann::json::parse(run.specJson, nullptr, false);
    if (!spec.is_object()) {
        return {};
    }
    QString line = QStringLiteral("vitrine ") + QString::fromStdString(run.workload);
    for (const auto& [key, value] : spec.items()) {
        if (key == "vitrine" || key == "workload" || value.is_null() || value.is_object()) {
            continue;
        }
        const QString flag =
            QStringLiteral(" --") + QString::fromStdString(key).replace(QLatin1Char('_'), QLatin1Char('-'));
        if (value.is_boolean()) {
            line += value.get<bool>() ? flag : QString();
        } else if (value.is_string()) {
            const QString text = QString::fromStdString(value.get<std::string>());
            line += text.isEmpty() ? QString() : flag + QLatin1Char(' ') + shellQuoted(text);
        } else if (value.is_array()) {
            QStringList parts;
            for (const nlohmann::json& item : value) {
                parts << QString::fromStdString(item.is_string() ? item.get<std::string>() : item.dump());
            }
            line += parts.isEmpty() ? QString() : flag + QLatin1Char(' ') + shellQuoted(parts.join(QLatin1Char(',')));
        } else {
            line += flag + QLatin1Char(' ') + QString::fromStdString(value.dump());
        }
    }
    return line;
}

} // namespace vitrine::ui
