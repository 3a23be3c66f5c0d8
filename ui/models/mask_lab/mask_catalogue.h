// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Ready programs for the Mask Lab's menus: the engine's catalogue with choices that fit the sizes on the screen, and
// the masks of a model's layers.

#include <QString>
#include <optional>
#include <vector>

#include "ui/models/mask_lab/mask_source.h"

namespace vitrine::ui {

struct MaskChoice {
    QString name;        ///< "Sliding window"
    QString explanation; ///< one line
    MaskSource source;
};

/// Every entry of engine::modCatalogue. Throws BadInput when the folder is missing or broken.
std::vector<MaskChoice> maskCatalogue(const MaskSizes& sizes);

/// `source` with a copy of each entry that its expressions name and its text does not, so that what runs can be read
/// and edited. The copies stand before the text. Without the folder the source as it is.
MaskSource withCatalogueText(MaskSource source);

/// A capture line for a name that a text reads and nobody gives, by what the name says: documents, prefixes, slopes.
std::string suggestedCapture(const std::string& name, const MaskSizes& sizes);

struct MaskLayer {
    int index = 0;
    QString title; ///< "Layer 3, full attention", "Layer 12, sliding 128"
    MaskSource source;
};
/// Whether a source is what maskModel made of some layer, as it was.
bool isLayerOfAModel(const MaskSource& source);

struct MaskModel {
    QString name;
    MaskSizes heads; ///< heads, kvHeads and headDim of the model; the rest is unset
    std::vector<MaskLayer> layers;
};
/// Of a folder, ORG/NAME or synthetic:NAME; reads config.json, no weights. For a worker. Throws what openModel throws.
MaskModel maskModel(const std::string& model, const std::map<std::string, std::string>& overrides = {});

} // namespace vitrine::ui
