// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The tab Curve of the KV cache view: what the windows save in two sentences, the first tokens enlarged, the whole run,
// and how far the cache could grow.

#include <optional>

#include "ui/models/kv_cache/kv_limits.h"
#include "ui/views/kv_cache/kv_curve_chart.h"
#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

class Chart;
class LegendStrip;
class StepStrip;

class KvCurvePage final : public Surface {
    Q_OBJECT

public:
    explicit KvCurvePage(QWidget* parent);

    Chart* chart() const { return whole_; } ///< of the whole run; its owner sets where the cursor may stand
    Chart* lens() const { return lens_; }
    Chart* limits() const { return limits_; }
    StepStrip* rounding() const { return rounding_; }
    StepStrip* turnBand() const { return turnBand_; }
    StepStrip* pressure() const { return pressure_; }
    QString sentence() const { return sentence_->text(); }
    QString secondSentence() const { return second_->text(); }
    QList<QWidget*> stops() const; ///< for the keyboard

    /// One run over its tokens; nothing of it is kept. Empty facts clear the page.
    void showTokens(const KvSummary& facts, const std::optional<KvRoom>& room, KvCurveWidgets parts);
    /// A batch over time.
    void showTime(const KvSummary& facts, const KvPool& pool, KvCurveWidgets parts);

signals:
    void readoutChanged(const QString& text);

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    QWidget* makeCurves();
    void updateStrips(const KvSummary& facts, const std::optional<KvRoom>& room, double lensEnd);
    /// Strips go first where the page is low.
    void fitHeight();
    void say(const KvSentences& words);
    void setLegend(const KvSummary& facts, KvCurveWidgets parts, bool dots);

    TextLabel *sentence_, *second_, *wholeTitle_, *lensTitle_, *limitNote_, *roundingNote_, *pressureNote_;
    LegendStrip* legend_;
    Chart *lens_, *whole_, *limits_;
    StepStrip *turnBand_, *rounding_, *lensRounding_, *pressure_;
    bool limitsKnown_ = false;
    QWidget *lensBox_, *limitBox_, *roundingBox_, *lensRoundingBox_, *pressureBox_;
};

} // namespace vitrine::ui
