// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which sequence and which head the map shows, how many there are, and what each head computes.

#include "ui/models/mask_lab/mask_map.h"
#include "ui/models/mask_lab/mask_source.h"
#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

class HeadStrip;
class NumberField;

class HeadsPanel final : public QWidget {
    Q_OBJECT

public:
    explicit HeadsPanel(QWidget* parent = nullptr);

    void setSizes(const MaskSizes& sizes, std::int64_t batch, std::int64_t head);
    void setMap(const MaskMap* map);
    HeadStrip* strip() const { return strip_; }
    QString sentence() const;
    NumberField* batchField() const { return batch_; }
    NumberField* headField() const { return head_; }
    NumberField* headsField() const { return heads_; }

signals:
    void planeChosen(qint64 batch, qint64 head);
    void sizesChosen(const vitrine::ui::MaskSizes& sizes);
    void readoutChanged(const QString& text);

private:
    void refresh();
    MaskSizes sizes_;
    std::int64_t planeBatch_ = 0, planeHead_ = 0;
    HeadStrip* strip_;
    TextLabel *range_, *sentence_;
    NumberField *batch_, *batches_, *head_, *heads_, *kvHeads_, *headDim_;
    std::vector<double> shares_;
    bool usesHead_ = false, usesBatch_ = false, known_ = false;
};

} // namespace vitrine::ui
