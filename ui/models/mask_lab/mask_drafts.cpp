// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_drafts.h"

#include <QSettings>
#include <nlohmann/json.hpp>

#include "ui/models/mask_lab/mask_lab.h"

namespace vitrine::ui {

void restoreDrafts(MaskLab& lab, const QString& settingsFile) {
    MaskSource sources[] = {exampleSource(lab.sizes().keys), causalSource()};
    if (!settingsFile.isEmpty()) {
        const QSettings kept(settingsFile, QSettings::IniFormat);
        MaskSizes sizes = lab.sizes();
        for (int i = 0; i < MaskLab::kSides; ++i) {
            const QByteArray text = kept.value(QStringLiteral("mask/%1").arg(i)).toByteArray();
            const nlohmann::json spec = nlohmann::json::parse(text.toStdString(), nullptr, false);
            if (spec.is_object() && spec.contains("program")) {
                sources[i] = sourceOfExperiment(spec, {});
                sources[i].name = spec.value("name", std::string());
                sources[i].mask = spec.value("mask", std::string());
                sources[i].score = spec.value("score", std::string());
                sizes = sizesOfExperiment(spec, sizes);
            }
        }
        lab.setSizes(sizes);
    }
    for (int i = 0; i < MaskLab::kSides; ++i) {
        lab.setSource(i, sources[i]);
    }
}

void keepDrafts(const MaskLab& lab, const QString& settingsFile) {
    if (settingsFile.isEmpty()) {
        return;
    }
    QSettings kept(settingsFile, QSettings::IniFormat);
    for (int i = 0; i < MaskLab::kSides; ++i) {
        const MaskSource& source = lab.side(i).source;
        nlohmann::json spec = maskExperiment(source, source.mask, source.score, lab.sizes());
        spec["name"] = source.name;
        for (const auto& [key, text] : {std::pair{"mask", source.mask}, std::pair{"score", source.score}}) {
            spec[key] = text; // also "none" and "the text's own"
        }
        kept.setValue(QStringLiteral("mask/%1").arg(i),
                      QByteArray::fromStdString(spec.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
    }
}

} // namespace vitrine::ui
