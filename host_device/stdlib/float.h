// Its types and limits are in the standard library, which every text has.
#pragma once
#include <metal_stdlib>
