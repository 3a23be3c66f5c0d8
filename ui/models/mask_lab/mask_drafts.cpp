// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/mask_lab/mask_drafts.h"

#include <QSettings>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "ui/models/mask_lab/mask_lab.h"

namespace vitrine::ui {

void restoreDrafts(MaskLab& lab, const QString& settingsFile) {
    MaskSource sources[] = {exampleSource(lab.sizes().keys), causalSource()};
    if (!settingsFile.isEmpty()) {
        const QSettings kept(settingsFile, QSettings::IniFormat);
        MaskSizes sizes = lab.sizes();
        for (int i = 0; i < MaskLab::kSides; ++i) {
            const QByteArray text = kept.value(QStringLiteral("mask/%1").arg(i)).toByteArray();
            const auto draft = engine::Experiment::read(text.toStdString());
            if (draft && draft->has("program")) {
                sources[i] = sourceOfExperiment(*draft, {});
                sources[i].name = base::textIn(text.toStdString(), "name");
                sources[i].mask = draft->text("mask");
                sources[i].score = draft->text("score");
                sizes = sizesOfExperiment(*draft, sizes);
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
