// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inspector of the Batching view: what one batch gains over the other, all about the chosen request or slot, and
// the tables of throughput and latency. GUI thread.

#include "ui/models/batching/batch_summary.h"
#include "ui/widgets/plots/result_panel.h"

class QPushButton;

namespace vitrine::ui {

class Chart;
class DockHeader;
class FactTable;

class BatchPanel final : public ResultPanel {
    Q_OBJECT

public:
    BatchPanel();

    /// `facts`: what the header says of the device.
    void setPair(const BatchPair& pair, const QString& facts);
    /// The run that the shown one may be compared with, by its name; empty: there is none.
    void setPartner(const QString& name);
    /// The chosen request (of both batches), or else the chosen slot of one side; -1: none is chosen.
    void setChoice(const BatchPair& pair, std::int32_t request, std::int32_t slot, int slotSide);

    /// Owned by whoever puts it into a dock.
    DockHeader* header() const { return header_; }
    QString asText() const;
    FactTable* throughput() const { return throughput_; }
    FactTable* latency() const { return latency_; }
    FactTable* detail() const { return detail_; }

signals:
    void partnerWanted();
    void readoutChanged(const QString& text);

private:
    DockHeader* header_;
    TextLabel* facts_;
    QPushButton* partner_;
    FactTable *detail_, *throughput_, *latency_;
    QWidget* sharesHead_;
    Chart* shares_;
};

} // namespace vitrine::ui
